"""Lists of hits as other programs read them: no name breaks a line, times are those of the file."""

import csv
import io
import json
from fractions import Fraction
from types import SimpleNamespace

import pytest

from wordreel.errors import QueryError
from wordreel.media.types import MediaInfo
from wordreel.search.hit_lists import FORMATS, MAX_EVENTS, exact_rate, timecode, write_hits
from wordreel.search.hits import Hit, Reason, SequenceHit

HOSTILE = '/films/=cmd(),"quoted" \n#EXTM3U\r\n\u202egpj.exe\t; ünï \udcff.mp4'
INFOS = {
    "pal": MediaInfo("video", "mp4", 100.0, 64, 48, 0, 25.0, "h264", "aac"),
    "ntsc": MediaInfo("video", "mp4", 100.0, 64, 48, 0, 29.97003, "h264", ""),
    "song": MediaInfo("audio", "mp3", 60.0, audio_codec="mp3"),
    "still": MediaInfo("image", "png", 0.0, 64, 48, video_codec="png"),
}
STORE = SimpleNamespace(info=INFOS.get)


def hit(rank, content, start, end, path=None, **more):
    info = INFOS[content]
    path = path or f"/films/{content}.mp4"
    why = (Reason("seen", 0.4, "a dog, =SUM(A1)\n"),)
    return Hit(rank, 0.5 / rank, path, start, end, info.kind, info.duration, content, why, **more)


HITS = [
    hit(1, "pal", 10.0, 12.48, HOSTILE, confidence=0.83),
    hit(2, "ntsc", 60.06, 61.06),
    hit(3, "song", 5.0, 6.0),
    hit(4, "still", 0.0, 0.0),
    hit(5, "pal", 99.0, 100.0),
]


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_csv_holds_everything_and_nothing_is_a_formula():
    text = write_hits(STORE, HITS, "csv")
    assert len(text.splitlines()) == 1 + len(HITS)  # no name breaks a line
    assert text.isascii() or all(c.isprintable() or c in "\r\n" for c in text)
    rows = rows_of(text)
    assert [row["rank"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert rows[0]["name"].startswith('\'=cmd(),"quoted" \\n#EXTM3U\\r\\n\\u202egpj.exe\\t; ünï \\udcff')
    assert rows[0]["path"].startswith("/films/=cmd()")
    assert (rows[0]["start"], rows[0]["end"], rows[0]["confidence"]) == ("10.000", "12.480", "0.8300")
    assert rows[0]["reason"] == "seen: a dog, =SUM(A1)\\n"
    assert rows[1]["confidence"] == ""
    formulas = [value for row in rows for value in row.values() if value.startswith(("=", "+", "-", "@"))]
    assert formulas == []


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "|", "%"])
def test_no_cell_begins_like_a_formula(start):
    name = f"/films/{start}1.mp4"
    assert rows_of(write_hits(STORE, [hit(1, "pal", 0.0, 1.0, name)], "csv"))[0]["name"][0] == "'"


def events_of(text):
    lines = text.split("\r\n")
    assert lines[:3] == ["TITLE: wordreel", "FCM: NON-DROP FRAME", ""]
    return [line.split() for line in lines if line[:3].isdigit()], [line for line in lines if line[:1] == "*"]


def frames_in(code, base):
    hours, minutes, seconds, frames = map(int, code.split(":"))
    assert frames < base
    return ((hours * 60 + minutes) * 60 + seconds) * base + frames


def test_edl_has_the_timecodes_of_each_file():
    events, comments = events_of(write_hits(STORE, HITS, "edl"))
    assert [event[0] for event in events] == ["001", "002", "003", "004", "005"]
    assert [event[2] for event in events] == ["B", "V", "A", "V", "B"]
    assert events[0][4:6] == ["00:00:10:00", "00:00:12:12"]
    assert events[1][4:6] == ["00:01:00:00", "00:01:01:00"]  # frame 1800 of 29.97 a second, none dropped
    assert events[3][4:6] == ["00:00:00:00", "00:00:05:00"]
    position = 3600 * 25
    for event, (start, end) in zip(
        events, [(10.0, 12.48), (60.06, 61.06), (5, 6), (0, 5), (99, 100)], strict=True
    ):
        assert frames_in(event[6], 25) == position
        position += round((end - start) * 25)
        assert frames_in(event[7], 25) == position
    assert sum(line.startswith("* FROM CLIP NAME: ") for line in comments) == 5
    assert "* COMMENT: 83% sure; seen: a dog, =SUM(A1)\\n" in comments
    assert comments[1].startswith("* SOURCE FILE: file:///films/%3Dcmd%28%29%2C%22quoted%22%20%0A")


def test_a_timecode_counts_every_frame():
    for rate in (Fraction(25), Fraction(24000, 1001), Fraction(30000, 1001), Fraction(60)):
        base = round(rate)
        assert [frames_in(timecode(n, rate), base) for n in range(0, 200_000, 997)] == list(
            range(0, 200_000, 997)
        )


@pytest.mark.parametrize(
    ("rate", "exact"),
    [(59.94, Fraction(60000, 1001)), (47.952, Fraction(48000, 1001)), (15.0, 15), (12.5, 12.5), (1e9, 25)],
)
def test_rates_are_those_of_cameras(rate, exact):
    assert exact_rate(rate) == exact


def test_an_edl_has_999_events():
    many = [hit(1 + n, "pal", 0.0, 1.0) for n in range(MAX_EVENTS)]
    assert len(events_of(write_hits(STORE, many, "edl"))[0]) == MAX_EVENTS
    with pytest.raises(QueryError, match="999"):
        write_hits(STORE, [*many, many[0]], "edl")


TIME = {"OTIO_SCHEMA": "RationalTime.1", "rate": float, "value": float}
RANGE = {"OTIO_SCHEMA": "TimeRange.1", "start_time": TIME, "duration": TIME}
ITEM = {"name": str, "metadata": dict, "effects": list, "markers": list}
REFERENCE = {
    "OTIO_SCHEMA": "ExternalReference.1",
    "name": str,
    "metadata": dict,
    "target_url": str,
    "available_range": RANGE,
}
SCHEMAS = {
    "Clip.1": ITEM | {"OTIO_SCHEMA": str, "source_range": RANGE, "media_reference": REFERENCE},
    "Gap.1": ITEM | {"OTIO_SCHEMA": str, "source_range": RANGE},
    "Track.1": ITEM | {"OTIO_SCHEMA": str, "source_range": type(None), "kind": str, "children": list},
    "Stack.1": ITEM | {"OTIO_SCHEMA": str, "source_range": type(None), "children": list},
    "Timeline.1": {
        "OTIO_SCHEMA": str, "name": str, "metadata": dict, "global_start_time": TIME, "tracks": dict,
    },
}  # fmt: skip


def check(value, schema):
    """Whether a value has exactly the fields of a schema, each of its type."""
    assert value.keys() == schema.keys()
    for name, kind in schema.items():
        if isinstance(kind, dict):
            check(value[name], kind)
        elif isinstance(kind, str):
            assert value[name] == kind
        else:
            assert isinstance(value[name], kind), name


def test_otio_has_the_structure_of_its_schema():
    timeline = json.loads(write_hits(STORE, HITS, "otio"))
    check(timeline, SCHEMAS["Timeline.1"])
    check(timeline["tracks"], SCHEMAS["Stack.1"])
    tracks = timeline["tracks"]["children"]
    for track in tracks:
        check(track, SCHEMAS["Track.1"])
        for child in track["children"]:
            check(child, SCHEMAS[child["OTIO_SCHEMA"]])
    kinds = {track["kind"]: [child["OTIO_SCHEMA"] for child in track["children"]] for track in tracks}
    assert kinds == {
        "Video": ["Clip.1", "Clip.1", "Gap.1", "Clip.1", "Clip.1"],
        "Audio": ["Clip.1", "Gap.1", "Clip.1", "Gap.1", "Clip.1"],
    }
    spans = [[child["source_range"]["duration"] for child in track["children"]] for track in tracks]
    assert spans[0] == spans[1]  # both tracks stay in step
    second = tracks[0]["children"][1]
    assert second["source_range"]["start_time"] == {
        "OTIO_SCHEMA": "RationalTime.1", "rate": pytest.approx(29.97003), "value": 1800.0,
    }  # fmt: skip
    assert second["media_reference"]["available_range"]["duration"]["value"] == 2997
    assert tracks[0]["children"][0]["metadata"]["wordreel"]["confidence"] == 0.83


def test_m3u_plays_each_moment_alone():
    lines = write_hits(STORE, HITS, "m3u").splitlines()
    assert lines[0] == "#EXTM3U"
    assert lines[2:4] == ["#EXTVLCOPT:start-time=10.000", "#EXTVLCOPT:stop-time=12.480"]
    assert [line for line in lines if not line.startswith("#")] == [
        line for line in lines if line.startswith("file:///films/")
    ]
    assert sum(line.startswith("#EXTINF:") for line in lines) == len(HITS)
    assert sum("start-time" in line for line in lines) == len(HITS) - 1  # a picture has none


def test_both_moments_of_a_sequence_are_listed():
    fields = dict(vars(HITS[1])) | {"then": (70.0, 71.0), "then_score": 0.2}
    rows = rows_of(write_hits(STORE, [SequenceHit(**fields)], "csv"))
    assert [(row["rank"], row["start"]) for row in rows] == [("2", "60.060"), ("2", "70.000")]
    assert rows[1]["reason"].startswith("then: ")


def test_an_empty_list_is_a_list():
    for form in FORMATS:
        assert write_hits(STORE, [], form)
    with pytest.raises(QueryError, match="csv, edl, otio, m3u"):
        write_hits(STORE, [], "pdf")
