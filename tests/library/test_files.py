"""Adding and removing files, with real experts."""

from pathlib import Path

import wordreel
from wordreel import library as files

EXPERTS = ("ocr", "shots")


def test_add_search_remove(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    report = library.add(media, experts=EXPERTS)
    assert len(report.added) == 3
    hit = library.search("moon landing", limit=1)[0]
    assert isinstance(hit, wordreel.Hit)
    assert Path(hit.path).name == "2.mp4"
    assert any("Moon landing" in reason.what for reason in hit.why)
    assert library.remove(media / "2.mp4") == [str(media / "2.mp4")]
    assert {Path(hit.path).name for hit in library.search("moon landing")} == {"0.mp4", "1.mp4"}
    assert len(library.videos()) == 2
    (media / "1.mp4").unlink()
    assert library.remove_missing() == [str(media / "1.mp4")]
    assert library.describe(media / "0.mp4")["words"][0]["text"] == "Apple pie"


def test_what_is_added_can_be_found_before_the_rest_is_done(tmp_path, media, monkeypatch):
    monkeypatch.setattr(files, "EMBED_EVERY", 0.0)
    found = []

    def look(now):
        if isinstance(now, wordreel.AddProgress) and now.done == 2:
            other = wordreel.Library(tmp_path / "reel", create=False)
            found.append(len(other.search("apple pie")))

    wordreel.Library(tmp_path / "reel").add(media, experts=EXPERTS, jobs=1, on_progress=look)
    assert max(found) >= 1
