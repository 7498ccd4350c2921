"""Filters about whole videos let through what a slow look at each video lets through."""

import os
import shutil
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from tests.fakes import Colour, FakeFence, Talk, write_media

from wordreel.catalogue.files import first_files, passing_contents
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import QueryError
from wordreel.ingest.add import add
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


LONG_AGO = 1_000_000_000  # 2001-09-09T01:46:40 in UTC


def local(time):
    """The clock of the machine, or of the recording, which is the same here."""
    return (time.astimezone() if time.tzinfo else time).replace(tzinfo=None)


def paths(store, conditions, contents=None):
    found = first_files(store.catalogue, conditions, contents)
    for content, file in found.items():
        video = store.video(content)
        assert (file.kind, file.duration) == (video.info.kind, video.info.duration)
        assert file.analysis == video.analysis
    return {content: file.path for content, file in found.items()}


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
        assert paths(store, chosen.conditions) == expected
        assert passing_contents(store.catalogue, chosen.conditions) == sorted(expected)
        some = list(expected)[:2]
        assert paths(store, chosen.conditions, some) == {content: expected[content] for content in some}
        kept.add(len(expected))
    assert len(kept) > 3


def test_folders_and_times_equal_the_slow_look(store, tmp_path):
    (tmp_path / "media" / "deep").mkdir()
    shutil.copy(tmp_path / "media" / "film0.mp4", tmp_path / "media" / "deep" / "copy.mp4")
    for number, path in enumerate(sorted((tmp_path / "media").rglob("*.*"))):
        os.utime(path, (LONG_AGO + number, LONG_AGO + number))
    shutil.copy(tmp_path / "media" / "film1.mp4", tmp_path / "media" / "VID-20010909-WA0001.mp4")
    add(store, [tmp_path / "media"], [Colour(), Talk("speech"), Talk("ocr", span=15.0)], FakeFence())
    files = store.files()
    folders = [
        None,
        tmp_path,
        tmp_path / "media" / "deep",
        tmp_path / "media" / "film1.mp4",
        tmp_path / "med",
    ]
    times = [None, *(datetime.fromtimestamp(LONG_AGO + number, tz=UTC) for number in (0, 2, 4))]
    times += [datetime(2001, 9, 9), datetime(2001, 9, 10)]  # in the zone of the machine
    kept = set()
    for folder, after, before in product(folders, times, times):
        if after and before and local(after) >= local(before):
            continue
        expected = {}
        for file in files:
            inside = folder is None or Path(file.path) == folder or folder in Path(file.path).parents
            if (
                inside
                and (after is None or local(datetime.fromisoformat(file.captured)) >= local(after))
                and (before is None or local(datetime.fromisoformat(file.captured)) < local(before))
            ):
                expected.setdefault(file.content, file.path)
        if after and before and (after.tzinfo is None) != (before.tzinfo is None):
            continue
        chosen = Filters(folder, after, before).conditions
        assert paths(store, chosen) == expected
        assert chosen.empty == (folder is None and after is None and before is None)
        kept.add(len(expected))
    assert len(kept) > 3


def test_durations_that_exclude_each_other():
    with pytest.raises(QueryError, match="swap"):
        Filters(min_duration=3, max_duration=2)


@pytest.mark.parametrize("folder", ["~nobody-of-this-name/x", "a\0b"])
def test_folders_that_cannot_be(folder):
    with pytest.raises(QueryError, match="is not a folder") as caught:
        _ = Filters(folder=folder).conditions
    assert caught.value.field == "folder"
