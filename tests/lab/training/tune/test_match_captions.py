"""Captions as users write them: what is used, what is left out, and what is said about it."""

import pytest

from wordreel.catalogue.records import StoredFile
from wordreel.errors import DatasetError
from wordreel.lab.training.tune import match_captions as module
from wordreel.lab.training.tune.match_captions import LEAST, match


def files(count):
    return [StoredFile(f"/films/part{n % 2}/clip{n}.mp4", f"hash{n:03}", 1, 1, 1.0) for n in range(count)]


def told(count):
    return {f"clip{n}.mp4": [f"a film of {n}", "another"] for n in range(count)}


def test_names_are_matched_as_elsewhere():
    captions = told(LEAST)
    captions["clip0"] = [*captions.pop("clip0.mp4"), "by its stem"]
    captions["part1/clip1.mp4"] = captions.pop("clip1.mp4")
    captions["/films/part0/clip2.mp4"] = captions.pop("clip2.mp4")
    captions["stranger.mp4"] = ["not here"]
    matched = match(files(LEAST), captions)
    assert len(matched.texts) == LEAST
    assert matched.missing == ("stranger.mp4",)
    assert matched.texts["hash000"] == ("a film of 0", "another", "by its stem")


def test_captions_without_words_are_left_out():
    captions = told(LEAST)
    captions["clip3.mp4"] = ["nan", " ", "…", "NaN", "a  real\none", "a real one"]
    matched = match(files(LEAST), captions)
    assert matched.texts["hash003"] == ("a real one",)
    assert matched.blank == 4


def test_files_of_the_same_bytes_are_one_video():
    twins = [*files(LEAST), StoredFile("/films/copy.mp4", "hash000", 1, 1, 1.0)]
    matched = match(twins, {**told(LEAST), "copy.mp4": ["the copy"]})
    assert len(matched.texts) == LEAST
    assert "the copy" in matched.texts["hash000"]


@pytest.mark.parametrize(
    ("captions", "said"),
    [
        ({}, "no captions"),
        ({"x.mp4": ["a"]}, "none of the 1 captioned names.*wordreel list"),
        ({"clip0.mp4": ["", "nan"]}, "empty"),
        (told(LEAST - 1), f"{LEAST - 1} videos.*at least {LEAST} are needed"),
        ({**told(3), "x.mp4": ["a"]}, "1 captioned names are not in the library"),
    ],
)
def test_what_cannot_be_used_is_said(captions, said):
    with pytest.raises(DatasetError, match=said):
        match(files(LEAST), captions)


def test_many_captions_are_drawn_from(monkeypatch):
    monkeypatch.setattr(module, "MOST", 3 * LEAST)
    captions = {f"clip{n}": [f"{n} said {k}" for k in range(9)] for n in range(LEAST)}
    one, two, other = (match(files(LEAST), captions, seed) for seed in (0, 0, 1))
    assert {len(texts) for texts in one.texts.values()} == {3}
    assert one.left == 6 * LEAST
    assert one.texts == two.texts != other.texts
    # The order of the file does not matter.
    assert match(files(LEAST), dict(reversed(captions.items()))).texts == one.texts
