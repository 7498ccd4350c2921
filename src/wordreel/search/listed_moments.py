"""The moments of a list of hits, with what other programs need to know of their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path, PurePath

from wordreel.catalogue.paths import is_imported
from wordreel.catalogue.store import LibraryStore
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
    """Frames a second as cameras and editors mean them.

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
