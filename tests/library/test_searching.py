"""Searching with words and files, with real experts."""

from itertools import chain
from pathlib import Path

import pytest

import wordreel
from wordreel.catalogue.lock import writer_lock
from wordreel.demo.film import title_card, write_film
from wordreel.errors import LibraryError, QueryError

EXPERTS = ("ocr", "shots")


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
        assert {Path(match.path).name for match in library.search(like=media / "0.mp4", **chosen)} == found
    with pytest.raises(QueryError, match="swap"):
        library.search(like=media / "0.mp4", min_duration=3, max_duration=2)


def test_searching_while_somebody_writes_finds_what_is_there(tmp_path, media):
    library = wordreel.Library(tmp_path / "reel")
    library.add(media / "0.mp4", experts=EXPERTS)
    with writer_lock(library.path / "lock"):
        other = wordreel.Library(tmp_path / "reel", create=False)
        assert len(other.search("apple pie")) == 1


def test_words_for_two_moments_where_and_many(tmp_path, media):
    write_film(
        media / "3.mp4",
        chain(title_card(["Apple pie"], 4, (10, 90, 40)), title_card(["Moon landing"], 4, (150, 20, 90))),
    )
    with wordreel.Library(tmp_path / "reel") as library:
        library.add(media, experts=EXPERTS)
        (hit,) = library.search("apple pie", then="moon landing")
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
