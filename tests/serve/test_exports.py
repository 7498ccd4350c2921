"""Clips and lists of hits over HTTP."""

import csv
import io
import threading
from pathlib import Path

import pytest
from tests.serve.conftest import running, wait

from wordreel.media.types import CutStopped


@pytest.fixture
def film(site):
    return site.get("/api/videos?q=film3").json["items"][0]


def test_a_moment_as_a_clip(site, film, tmp_path):
    before = Path(film["path"]).read_bytes()
    answer = site.get(f"/api/clip/{film['content']}?start=2&end=4&tolerance=100")
    assert (answer.status, answer.headers["content-type"]) == (200, "video/mp4")
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''film3%200.02.mp4"
    assert answer.headers["x-clip-picture"] == "copied"
    assert float(answer.headers["x-clip-start"]) <= 2.0
    assert "sandbox" in answer.headers["content-security-policy"]
    (tmp_path / "a.mp4").write_bytes(answer.body)
    info = site.service.fence.probe(tmp_path / "a.mp4")
    length = float(answer.headers["x-clip-end"]) - float(answer.headers["x-clip-start"])
    assert info.duration == pytest.approx(length, abs=0.3)
    assert Path(film["path"]).read_bytes() == before


def test_a_clip_to_be_played(site, film):
    address = f"/api/clip/{film['content']}?start=1.1&end=1.9&format=mkv&tolerance=0&download=false"
    answer = site.get(address)
    assert answer.headers["content-type"] == "video/x-matroska"
    assert "content-disposition" not in answer.headers
    assert answer.headers["x-clip-picture"] == "encoded"


@pytest.mark.parametrize(
    ("moment", "status", "code"),
    [
        ("start=4&end=2", 422, "bad_moment"),
        ("start=0&end=700", 422, "too_long"),
        ("start=0", 422, "invalid"),
        ("start=0&end=1&format=exe", 422, "invalid"),
        ("start=0&end=1&codec=h264", 422, "invalid"),
        ("start=500&end=501", 422, "broken_media"),
    ],
)
def test_what_is_no_moment(site, film, moment, status, code):
    answer = site.get(f"/api/clip/{film['content']}?{moment}")
    assert (answer.status, answer.code) == (status, code)


def test_a_clip_of_no_video(site):
    assert site.get(f"/api/clip/{'0' * 64}?start=0&end=1").code == "not_found"


def test_a_clip_that_nobody_waits_for_is_stopped(library, monkeypatch):
    begun, stopped = threading.Event(), threading.Event()

    def cut(path, request, descriptor, watch):
        begun.set()
        wait(watch.stopped)
        stopped.set()
        raise CutStopped

    with running(library) as site:
        monkeypatch.setattr(site.service.fence, "cut", cut, raising=False)
        content = site.get("/api/videos").json["items"][0]["content"]
        with pytest.raises(TimeoutError):
            site.ask("GET", f"/api/clip/{content}?start=0&end=1", timeout=1)
        assert begun.wait(60)
        assert stopped.wait(60)


def test_hits_as_lists(site):
    found = site.get("/api/search?text=red&limit=3").json["hits"]
    answer = site.get("/api/export?text=red&limit=3&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''hits.csv"
    rows = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
    assert [(row["path"], float(row["start"])) for row in rows] == [
        (hit["path"], pytest.approx(hit["start"], abs=1e-3)) for hit in found
    ]
    for form, begins in (("edl", b"TITLE: "), ("otio", b"{"), ("m3u", b"#EXTM3U")):
        answer = site.get(f"/api/export?text=red&format={form}")
        assert (answer.status, answer.body.startswith(begins)) == (200, True), form
    assert site.get("/api/export?text=red&format=pdf").code == "invalid"
    assert site.get("/api/export?format=csv").code == "bad_query"
    like = site.get(f"/api/export?like={found[0]['content']}&format=m3u")
    assert like.status == 200
