"""Lists of hits for other programs: tables (RFC 4180), playlists, edit decision lists and timelines.

Timecodes of the EDL do not drop frames: they number the frames of a file from 00:00:00:00, at 29.97 frames a
second as at 30. Times of the sources count in the rate of each file, those of the record in the rate of most
of them. Clips of the timeline have the schema `Clip.1`, which every version of OpenTimelineIO reads; times
count frames of each file.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from wordreel.catalogue.paths import is_imported
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import QueryError
from wordreel.search.hits import Hit, SequenceHit
from wordreel.util.printable import printable_text

STILL = 5.0  # seconds for which a picture is shown
UNKNOWN_RATE = Fraction(25)


@dataclass(frozen=True)
class ListedMoment:
    """One moment of one file. The two moments of a hit for "first this, then that" are listed one by one."""

    rank: int
    path: str
    start: float
    end: float
    kind: str
    duration: float
    rate: Fraction  # frames a second
    pictures: bool
    sound: bool
    score: float
    confidence: float | None
    reason: str
    content: str

    @property
    def name(self) -> str:
        """Return the name of the file."""
        return printable_text(PurePath(self.path).name)

    @property
    def address(self) -> str:
        """Where the file is as a URL, which has no line breaks and no unprintable characters."""
        return self.path if is_imported(self.path) else Path(self.path).absolute().as_uri()

    @property
    def comment(self) -> str:
        """How sure the hit is and why it was found, on one line."""
        sure = "" if self.confidence is None else f"{self.confidence:.0%} sure"
        return "; ".join(part for part in (sure, self.reason) if part)


def moments_of(store: LibraryStore, hits: Iterable[Hit]) -> list[ListedMoment]:
    """Return the moments of some hits, in order."""
    listed: list[ListedMoment] = []
    for hit in hits:
        info = store.info(hit.content)
        still = hit.kind == "image"
        spans = [(hit.start, STILL if still else hit.end)]
        if isinstance(hit, SequenceHit):
            spans.append(hit.then)
        reason = "; ".join(str(one) for one in hit.why[:1])
        listed += [
            ListedMoment(
                rank=hit.rank,
                path=str(hit.path),
                start=start,
                end=end,
                kind=hit.kind,
                duration=STILL if still else hit.duration,
                rate=exact_rate(info.frame_rate if info else 0.0),
                pictures=still or info is None or info.has_video,
                sound=info is not None and bool(info.audio_codec),
                score=hit.score,
                confidence=hit.confidence,
                reason=printable_text(reason if number == 0 else f"then: {reason}"),
                content=hit.content,
            )
            for number, (start, end) in enumerate(spans)
        ]
    return listed


def exact_rate(rate: float) -> Fraction:
    """Return frames a second as cameras and editors mean them.

    >>> exact_rate(29.970029), exact_rate(25.0), exact_rate(23.98), exact_rate(0.0)
    (Fraction(30000, 1001), Fraction(25, 1), Fraction(24000, 1001), Fraction(25, 1))
    """
    if not 0.5 <= rate <= 1000:
        return UNKNOWN_RATE
    usual = [Fraction(round(rate)), Fraction(round(rate * 1.001) * 1000, 1001)]
    nearest = min(usual, key=lambda one: abs(float(one) - rate))
    return nearest if abs(float(nearest) - rate) < 0.006 else Fraction(rate).limit_denominator(1001)


def timeline_rate(moments: Sequence[ListedMoment]) -> Fraction:
    """Return the rate that most moments have; of equals the first."""
    rates = Counter(moment.rate for moment in moments if moment.pictures and moment.kind != "image")
    return rates.most_common(1)[0][0] if rates else UNKNOWN_RATE


MAX_EVENTS = 999
FIRST = 3600  # seconds of timecode at which the record begins
REEL = "AX"  # a source that is a file, not a tape
Schema = dict[str, Any]


def edl(moments: Sequence[ListedMoment]) -> str:
    """Return the list as text.

    Raises:
        QueryError: There are more moments than an EDL can number.
    """
    if len(moments) > MAX_EVENTS:
        raise QueryError(
            f"an EDL holds {MAX_EVENTS} moments, not {len(moments)}; ask for fewer hits", field="limit"
        )
    rate = timeline_rate(moments)
    lines = ["TITLE: wordreel", "FCM: NON-DROP FRAME", ""]
    at = FIRST * base_of(rate)
    for number, moment in enumerate(moments, start=1):
        first, last = frame_at(moment.start, moment.rate), frame_at(moment.end, moment.rate)
        last = max(last, first + 1)
        length = max(1, frame_at(moment.end - moment.start, rate))
        source = f"{timecode(first, moment.rate)} {timecode(last, moment.rate)}"
        record = f"{timecode(at, rate)} {timecode(at + length, rate)}"
        lines.append(f"{number:03d}  {REEL:<8} {_channels(moment):<5} C        {source} {record}")
        lines.append(f"* FROM CLIP NAME: {moment.name}")
        lines.append(f"* SOURCE FILE: {moment.address}")
        if moment.comment:
            lines.append(f"* COMMENT: {moment.comment}")
        at += length
    return "\r\n".join(lines) + "\r\n"


def _channels(moment: ListedMoment) -> str:
    if not moment.pictures:
        return "A"
    return "B" if moment.sound else "V"


def base_of(rate: Fraction) -> int:
    """Return the frames in one second of timecode."""
    return max(1, round(rate))


def frame_at(seconds: float, rate: Fraction) -> int:
    """Return the number of the frame nearest to a time.

    >>> frame_at(10.01, Fraction(30000, 1001))
    300
    """
    return math.floor(seconds * rate + Fraction(1, 2))


def timecode(frame: int, rate: Fraction) -> str:
    """Return a frame's number as hours, minutes, seconds and frames, none dropped.

    >>> timecode(1800, Fraction(30000, 1001)), timecode(25 * 3600 + 7, Fraction(25))
    ('00:01:00:00', '01:00:00:07')
    """
    base = base_of(rate)
    seconds, frames = divmod(frame, base)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours % 100:02d}:{minutes:02d}:{seconds:02d}:{frames:02d}"


def otio(moments: Sequence[ListedMoment]) -> str:
    """Return the timeline as JSON."""
    tracks = [
        _track("Video", [_item(moment, moment.pictures) for moment in moments]),
        _track("Audio", [_item(moment, moment.sound) for moment in moments]),
    ]
    stack = _composable("Stack.1", "tracks") | {"source_range": None, "children": tracks}
    timeline: Schema = {
        "OTIO_SCHEMA": "Timeline.1",
        "name": "wordreel",
        "metadata": {},
        "global_start_time": _time(0, timeline_rate(moments)),
        "tracks": stack,
    }
    return json.dumps(timeline, indent=1) + "\n"


def _track(kind: str, children: list[Schema]) -> Schema:
    return _composable("Track.1", kind) | {"kind": kind, "source_range": None, "children": children}


def _item(moment: ListedMoment, there: bool) -> Schema:
    """Return a clip, or a gap of its length where the file has no such stream."""
    first = frame_at(moment.start, moment.rate)
    length = max(1, frame_at(moment.end, moment.rate) - first)
    if not there:
        return _composable("Gap.1", "") | {"source_range": _range(0, length, moment.rate)}
    whole = max(first + length, frame_at(moment.duration, moment.rate))
    reference: Schema = {
        "OTIO_SCHEMA": "ExternalReference.1",
        "name": moment.name,
        "metadata": {},
        "target_url": moment.address,
        "available_range": _range(0, whole, moment.rate),
    }
    facts = {
        "rank": moment.rank,
        "score": moment.score,
        "confidence": moment.confidence,
        "reason": moment.reason,
        "content": moment.content,
    }
    return _composable("Clip.1", moment.name) | {
        "metadata": {"wordreel": facts},
        "source_range": _range(first, length, moment.rate),
        "media_reference": reference,
    }


def _composable(schema: str, name: str) -> Schema:
    return {"OTIO_SCHEMA": schema, "name": name, "metadata": {}, "effects": [], "markers": []}


def _range(first: int, length: int, rate: Fraction) -> Schema:
    return {
        "OTIO_SCHEMA": "TimeRange.1",
        "start_time": _time(first, rate),
        "duration": _time(length, rate),
    }


def _time(frames: int, rate: Fraction) -> Schema:
    return {"OTIO_SCHEMA": "RationalTime.1", "rate": float(rate), "value": float(frames)}


COLUMNS = ("rank", "name", "path", "start", "end", "confidence", "score", "reason", "kind", "content")
FORMULA = ("=", "+", "-", "@", "|", "%")


def csv_table(moments: Sequence[ListedMoment]) -> str:
    """Format one row for each moment; times in seconds, confidences between 0 and 1."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for moment in moments:
        sure = "" if moment.confidence is None else f"{moment.confidence:.4f}"
        rows.writerow(
            (
                moment.rank,
                cell(moment.name),
                cell(printable_text(moment.path)),
                f"{moment.start:.3f}",
                f"{moment.end:.3f}",
                sure,
                f"{moment.score:.6f}",
                cell(moment.reason),
                moment.kind,
                moment.content,
            )
        )
    return out.getvalue()


def cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("a=b")
    ("'=1+1", 'a=b')
    """
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def m3u(moments: Sequence[ListedMoment]) -> str:
    """Return the playlist as UTF-8 text; files are URLs, so that no name can break a line."""
    lines = ["#EXTM3U"]
    for moment in moments:
        title = f"{moment.name} ({moment.comment})" if moment.comment else moment.name
        lines.append(f"#EXTINF:{moment.end - moment.start:.0f},{title}")
        if moment.kind != "image":
            lines.append(f"#EXTVLCOPT:start-time={moment.start:.3f}")
            lines.append(f"#EXTVLCOPT:stop-time={moment.end:.3f}")
        lines.append(moment.address)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class ListFormat:
    """How moments are written, the ending of such a file, and its media type."""

    write: Callable[[Sequence[ListedMoment]], str]
    ending: str
    media_type: str


FORMATS = {
    "csv": ListFormat(csv_table, ".csv", "text/csv; charset=utf-8"),
    "edl": ListFormat(edl, ".edl", "text/plain; charset=utf-8"),
    "otio": ListFormat(otio, ".otio", "application/json"),
    "m3u": ListFormat(m3u, ".m3u8", "audio/x-mpegurl; charset=utf-8"),
}


def write_hits(store: LibraryStore, hits: Iterable[Hit], form: str) -> str:
    """Return a list of hits in one of `FORMATS`.

    Raises:
        QueryError: There is no such format, or it cannot hold so many hits.
    """
    if form not in FORMATS:
        raise QueryError(f"there is no format {form!r}; there are: {', '.join(FORMATS)}", field="format")
    return FORMATS[form].write(moments_of(store, hits))
