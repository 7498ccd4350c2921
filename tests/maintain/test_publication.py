"""What a replica takes from a server, and what it does not; see tests/servers for a real one."""

from __future__ import annotations

import pytest

from wordreel.catalogue.store import REPLICA
from wordreel.errors import LibraryError
from wordreel.maintain.follow import check_names
from wordreel.maintain.publication import travelling


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
    assert travelling("settings", rows) == rows[:3]
    assert travelling("files", rows) == rows


@pytest.mark.parametrize("name", ["", "../../../etc/key", "/etc/key", "A" * 64, "a" * 65, "a" * 64 + "\n"])
def test_names_of_tracks_are_hashes(name):
    check_names(["a" * 64, None])
    with pytest.raises(LibraryError, match="does not name a track"):
        check_names([None, name])
