"""`wordreel.Library`, with real experts on films made on the spot."""

from itertools import chain
from pathlib import Path

import pytest

import wordreel
from wordreel import api
from wordreel.demo.film import title_card, write_film
from wordreel.errors import LibraryError, QueryError
from wordreel.library.lock import writer_lock

EXPERTS = ("ocr", "shots")


@pytest.fixture
def media(tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    for number, line in enumerate(["Apple pie", "Steam searcher", "Moon landing"]):
        write_film(folder / f"{number}.mp4", title_card([line], 2, (40 * number, 60, 90)))
    return folder


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


def test_look_alikes_pass_the_filters_of_search(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    library.add(media, experts=EXPERTS)
    names = {"1.mp4", "2.mp4"}
    for chosen, found in (
        ({"kind": "video", "min_duration": 1.0, "max_duration": 9.0, "has_text": True}, names),
        ({"has_speech": False}, names),
        ({"kind": "image"}, set()),
        ({"min_duration": 9.0}, set()),
        ({"max_duration": 1.0}, set()),
        ({"has_speech": True}, set()),
        ({"has_text": False}, set()),
    ):
        assert {Path(match.path).name for match in library.like(media / "0.mp4", **chosen)} == found
    with pytest.raises(QueryError, match="swap"):
        library.like(media / "0.mp4", min_duration=3, max_duration=2)


def test_another_object_sees_the_same_library(tmp_path, media):
    wordreel.Library(tmp_path / "reel").add(media, experts=EXPERTS)
    again = wordreel.Library(tmp_path / "reel", create=False)
    assert Path(again.search("steam searcher", limit=1)[0].path).name == "1.mp4"


def test_what_is_added_can_be_found_before_the_rest_is_done(tmp_path, media, monkeypatch):
    monkeypatch.setattr(api, "EMBED_EVERY", 0.0)
    found = []

    def look(now):
        if isinstance(now, wordreel.AddProgress) and now.done == 2:
            other = wordreel.Library(tmp_path / "reel", create=False)
            found.append(len(other.search("apple pie")))

    wordreel.Library(tmp_path / "reel").add(media, experts=EXPERTS, jobs=1, on_progress=look)
    assert max(found) >= 1


def test_searching_while_somebody_writes_finds_what_is_there(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    library.add(media / "0.mp4", experts=EXPERTS)
    with writer_lock(library.path / "lock"):
        other = wordreel.Library(tmp_path / "reel", create=False)
        assert len(other.search("apple pie")) == 1


def test_reindexing_gives_the_same_answers(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    library.add(media, experts=EXPERTS)
    before = [(hit.path, hit.score) for hit in library.search("steam")]
    assert library.reindex() == 3
    assert [(hit.path, hit.score) for hit in library.search("steam")] == before


def test_a_library_closes_itself(tmp_path):
    with wordreel.Library(tmp_path / "reel") as library:
        assert library.videos() == []
    with pytest.raises(wordreel.LibraryError):
        library.videos()


def test_words_for_two_moments_where_and_many(tmp_path, media):
    write_film(
        media / "3.mp4",
        chain(title_card(["Apple pie"], 4, (10, 90, 40)), title_card(["Moon landing"], 4, (150, 20, 90))),
    )
    with wordreel.Library(tmp_path / "reel") as library:
        library.add(media, experts=EXPERTS)
        (hit,) = library.then("apple pie", "moon landing")
        assert Path(hit.path).name == "3.mp4"
        assert hit.end <= hit.then[0]
        timeline = library.where(media / "3.mp4", "moon landing")
        assert timeline.moments[0][0] >= 3.5
        assert timeline.scores[0] < timeline.scores[-1]
        with pytest.raises(LibraryError, match="not in the library"):
            library.where(tmp_path / "other.mp4", "moon landing")
        queries = ["steam engine", wordreel.Query("moon landing", limit=1)]
        steam, moon = library.search_many(queries)
        assert [hit.path for hit in steam] == [hit.path for hit in library.search("steam engine")]
        assert len(moon) == 1
        compared = library.search("steam engine", compare=True)
        assert compared.plain == library.search("steam engine", norm="none").hits
        assert compared.norm.startswith("querybank(everyday, ")
        one, (same,) = library.encode_text("a dog"), library.encode_texts(["a dog"])
        assert (one.vectors == same.vectors).all()
        assert library.encode_video(media / "3.mp4").available.any()
        with pytest.raises(TypeError, match="not both"):
            library.search(wordreel.Query("a dog"), limit=3)


def test_opening_what_is_not_there(tmp_path):
    with pytest.raises(LibraryError, match="no library"):
        wordreel.Library(tmp_path / "none", create=False)


def test_the_package_names_what_it_has():
    assert wordreel.Library.__name__ == "Library"
    for name in wordreel.__all__:
        assert name == "__version__" or getattr(wordreel, name).__name__ == name
    exported = {name for names in wordreel._MODULES.values() for name in names}
    assert set(wordreel.__all__) == {*exported, "__version__"}
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = wordreel.nothing_here
