import json

import pytest
from tests.cli.invoke import invoke
from tests.digest import digest_of
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add import add


@pytest.fixture
def library(tmp_path):
    write_media(tmp_path / "media" / "a.mp4", seconds=30, seed=1)
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        add(store, [tmp_path / "media"], experts(), FakeFence())
    return tmp_path / "library"


def test_there_and_back(library, tmp_path):
    done = invoke("backup", tmp_path / "copy", "-L", library)
    assert done.exit_code == 0, done.output
    assert f"copied to {tmp_path / 'copy'}" in done.output
    done = invoke("restore", tmp_path / "copy", "-L", tmp_path / "back", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["copied"] == report["tracks"] > 0
    with LibraryStore.open(library) as one, LibraryStore.open(tmp_path / "back") as other:
        assert digest_of(one) == digest_of(other)


def test_damage_is_an_exit_status_and_a_next_step(library, tmp_path):
    with LibraryStore.open(library) as store:
        digest = next(row.hash for row in store.tracks() if row.hash)
        store.track_files.path(digest).write_bytes(b"damaged")
    done = invoke("backup", tmp_path / "copy", "-L", library)
    assert done.exit_code == 1
    assert digest in done.output
    assert "wordreel verify --repair" in done.output
