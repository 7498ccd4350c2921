"""The library with real decoding."""

import shutil

import pytest
from tests.fakes import Colour, Shots, Talk
from tests.media_files import video

from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.media import Fence
from wordreel.types import Absent, Track


def test_real_files(store, media):
    video(media / "talk.mp4", seconds=3.0)
    video(media / "silent.mp4", seconds=2.0, sound=False)
    shutil.copy(media / "talk.mp4", media / "again.mp4")
    (media / "cut.mp4").write_bytes((media / "talk.mp4").read_bytes()[:900])
    (media / "notes.txt").write_text("not media")
    with Fence() as fence:
        report = add(store, [media], [Colour(rate=5.0), Talk(rate=16000), Shots()], fence)
    assert (len(report.added), len(report.duplicates), report.ignored) == (2, 1, 1)
    assert [p for p, _ in report.failed] == [str(media / "cut.mp4")]
    by_name = {p.rsplit("/", 1)[1]: v for v in store.videos() for p in v.paths}
    film = by_name["talk.mp4"]
    assert film.info.kind == "video"
    assert film.info.duration == pytest.approx(3.0, abs=0.15)
    track = store.track(film.content, "colour")
    assert isinstance(track, Track)
    assert len(track) in (15, 16)
    assert store.track(by_name["silent.mp4"].content, "talk") == Absent("no sound stream")
    assert len(store.words(film.content)) == 1
    assert verify(store) == []
