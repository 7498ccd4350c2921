"""Captions belong to contents; imported items have a path of their own that is no file's."""

import pytest
from tests.digest import digest_of
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.captions import put_captions, same_captions
from wordreel.catalogue.paths import imported_path, library_path, may_exist
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify


@pytest.fixture
def contents(store, media):
    for number in range(2):
        write_media(media / f"{number}.mp4", seed=number)
    add(store, [media], experts(), FakeFence())
    return [file.content for file in store.files()]


def test_captions_come_back_in_order_by_split_and_dataset(store, contents):
    first, second = contents
    put_captions(store.catalogue, second, "A", "test", [("b", None, None), ("a", 1.0, 2.5)])
    put_captions(store.catalogue, first, "A", "train", [("c", None, None)])
    put_captions(store.catalogue, first, "B", "test", [("d\0\ud800", None, None)])
    assert [(c.content, c.text, c.start, c.end) for c in store.captions("test", "A")] == [
        (second, "b", None, None),
        (second, "a", 1.0, 2.5),
    ]
    assert [c.text for c in store.captions("test")] == ["b", "a", "d ?"]
    assert [c.text for c in store.captions(content=first)] == ["c", "d ?"]
    assert len(store.captions()) == 4
    assert [(c.dataset, c.split) for c in store.captions()].count(("A", "test")) == 2


def test_putting_again_replaces(store, contents):
    put_captions(store.catalogue, contents[0], "A", "test", [("a", None, None), ("b", None, None)])
    before = digest_of(store)
    assert same_captions(store.catalogue, contents[0], "A", "test", [("a", None, None), ("b", None, None)])
    assert not same_captions(store.catalogue, contents[0], "A", "test", [("a", None, None)])
    put_captions(store.catalogue, contents[0], "A", "test", [("a", None, None)])
    assert [c.text for c in store.captions()] == ["a"]
    assert digest_of(store) != before


def test_captions_go_with_their_item(store, contents, media):
    put_captions(store.catalogue, contents[0], "A", "test", [("a", None, None)])
    store.remove([media / "0.mp4"])
    assert store.captions() == []
    assert [problem.kind for problem in verify(store)] == []


@pytest.mark.parametrize("item", ["a", "a/b", "..", "../a", "/etc", "a//b", "", "é", "a/", "x\0y"])
def test_imported_paths_survive_pathlib_and_are_apart(item):
    from pathlib import Path

    path = imported_path("Set", item)
    assert str(Path(path)) == path
    assert library_path(Path(path)) == path
    assert may_exist(path)
    others = {imported_path("Set", other) for other in ("a", "b", ".", "a/c", "%2E") if other != item}
    assert path not in others
