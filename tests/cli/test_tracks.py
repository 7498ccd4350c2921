"""`wordreel tracks`."""

import json
import uuid

from tests.cli.invoke import invoke

from wordreel.catalogue.store import LibraryStore


def test_shows_and_moves(tmp_path):
    library = tmp_path / "library"
    LibraryStore.create_or_open(library).close()
    assert invoke("tracks", "-L", library).stdout == f"0 tracks (0.0 kB) in {library / 'tracks'}\n"
    address = f"memory://{uuid.uuid4().hex}/tracks"
    moved = invoke("tracks", address, "-L", library, "--json")
    assert json.loads(moved.stdout) == {"address": address, "tracks": 0, "bytes": 0}
    refused = invoke("tracks", "elsewhere", "-L", library)
    assert (refused.exit_code, "is not an object store" in str(refused.exception)) == (1, True)
