"""What a replica takes from a server, and what it does not; see tests/servers for a real one."""

from __future__ import annotations

import pytest

from wordreel.errors import LibraryError
from wordreel.library.follow import check_names
from wordreel.library.publication import travelling
from wordreel.library.store import REPLICA


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
