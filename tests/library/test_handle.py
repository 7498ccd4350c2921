"""Opening and closing a library."""

from pathlib import Path

import pytest

import wordreel
from wordreel.errors import LibraryError

EXPERTS = ("ocr", "shots")


def test_another_object_sees_the_same_library(tmp_path, media):
    wordreel.Library(tmp_path / "reel").add(media, experts=EXPERTS)
    again = wordreel.Library(tmp_path / "reel", create=False)
    assert Path(again.search("steam searcher", limit=1)[0].path).name == "1.mp4"


def test_a_library_closes_itself(tmp_path):
    with wordreel.Library(tmp_path / "reel") as library:
        assert library.videos() == []
    with pytest.raises(wordreel.LibraryError):
        library.videos()


def test_opening_what_is_not_there(tmp_path):
    with pytest.raises(LibraryError, match="no library"):
        wordreel.Library(tmp_path / "none", create=False)
