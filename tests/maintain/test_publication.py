"""What a replica takes from a server, and what it does not; see tests/servers for a real one."""

from __future__ import annotations

import pytest
from tests.example_library import build

from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError
from wordreel.maintain.publication import KEYS, check_names, pack, publishable, read_rows, unpack


def test_settings_of_a_machine_do_not_travel():
    names = [
        "library id",
        "model",
        "backbone_source",
        "serve.token",
        "tracks",
        "index",
        "index recall",
        REPLICA,
    ]
    rows = [(name, "x") for name in names]
    assert publishable("settings", rows) == rows[:3]
    assert publishable("files", rows) == rows


@pytest.mark.parametrize("name", ["", "../../../etc/key", "/etc/key", "A" * 64, "a" * 65, "a" * 64 + "\n"])
def test_names_of_tracks_are_hashes(name):
    check_names(["a" * 64])
    with pytest.raises(LibraryError, match="does not name a track"):
        check_names(["a" * 64, name])


def test_tables_arrive_as_they_were_packed_and_nothing_else_does(tmp_path):
    build(tmp_path / "films", tmp_path / "library")
    with LibraryStore.open(tmp_path / "library") as store:
        store.catalogue.run("UPDATE files SET path = path || x'ff' WHERE path LIKE '%sea%'")
        tables = {name: read_rows(store, name) for name in KEYS}
        assert sum(map(len, tables.values())) > 20
        assert unpack(store, pack(tables)) == tables
        with pytest.raises(LibraryError, match="cannot be read"):
            unpack(store, b"nonsense")
        for wrong in ([(1,)], [("a", "b")], [({"a": 1},)]):
            with pytest.raises(LibraryError, match="cannot be read"):
                unpack(store, pack({**tables, "quick_contents": wrong}))
        settings = [("model", "joint"), ("serve.token", "theirs")]
        assert unpack(store, pack({**tables, "settings": settings}))["settings"] == settings[:1]
