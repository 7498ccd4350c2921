"""Filters about whole videos let through what a slow look at each video lets through."""

from itertools import product
from pathlib import Path

import pytest
from tests.library.fakes import Colour, FakeFence, Talk, write_media

from wordreel.errors import QueryError
from wordreel.library import LibraryStore, add
from wordreel.search.filters import Filters


@pytest.fixture
def store(tmp_path: Path):
    folder = tmp_path / "media"
    for seed in range(4):
        write_media(folder / f"film{seed}.mp4", seconds=10.0 * (seed + 1), seed=seed, sound=seed != 1)
    write_media(folder / "still.png", kind="image", seed=40)
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        add(made, [folder], [Colour(), Talk("speech"), Talk("ocr", span=15.0)], FakeFence())
        yield made


def test_filters_equal_the_slow_look(store):
    files = store.files()
    choices = (
        (None, 10.0, 25.0),
        (None, 25.0, 40.0),
        (None, True, False),
        (None, True, False),
        (None, "colour", "speech", "nobody"),
        (None, "video", "image", "audio"),
    )
    kept = set()
    for low, high, speech, text, expert, kind in product(*choices):
        if low is not None and high is not None and low > high:
            continue
        chosen = Filters(None, None, None, low, high, speech, text, expert, kind)
        expected = {}
        for file in files:
            length = store.info(file.content).duration
            words = {word.expert for word in store.words(file.content)}
            tracks = {row.expert for row in store.tracks(file.content) if row.present}
            if (
                (low is None or length >= low)
                and (high is None or length <= high)
                and (speech is None or speech == ("speech" in words))
                and (text is None or text == ("ocr" in words))
                and (expert is None or expert in tracks)
                and (kind is None or kind == store.info(file.content).kind)
            ):
                expected.setdefault(file.content, file.path)
        assert chosen.paths(files, store.video_facts) == expected
        kept.add(len(expected))
    assert len(kept) > 3


def test_facts_are_not_asked_without_need(store):
    def never():
        raise AssertionError("nobody needs to know")

    assert len(Filters().paths(store.files(), never)) == 5


def test_durations_that_exclude_each_other():
    with pytest.raises(QueryError, match="swap"):
        Filters(min_duration=3, max_duration=2)
