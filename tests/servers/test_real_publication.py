"""A library published in a real PostgreSQL, and servers that answer from it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.digest import digest_of
from tests.example_library import ColourModel, build
from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.servers.real_servers import free_port

import wordreel
from wordreel.embed.embed_library import embed_library
from wordreel.errors import IndexServerError, LibraryError
from wordreel.ingest.add import add
from wordreel.maintain import publication
from wordreel.maintain.publication import KEYS, PublicationReport, pack, read_rows

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def published(server, name):
    return f"{server.url}?library={name}"


def opened(path):
    return wordreel.Library(path, model=ColourModel())


def add_film(library, path, seed):
    write_media(path, seconds=30.0, seed=seed)
    add(library.store, [path.parent], [Colour(), Talk()], FakeFence())
    embed_library(library.store, ColourModel())
    library._searcher = None


def answers(library):
    library._searcher = None
    return [
        [(hit.path, hit.start, round(hit.score, 5)) for hit in library.search(text, moments=True, limit=50)]
        for text in ("red", "green", "blue", "word3 sea")
    ]


def test_replicas_answer_as_the_original(postgresql, tmp_path):
    build(tmp_path / "films", tmp_path / "library")
    address = published(postgresql, "films")
    with opened(tmp_path / "library") as original, opened(tmp_path / "a") as one:
        original.banks.build("words", ["red x", "green y", "blue z"], "made up")
        with pytest.raises(LibraryError, match="wordreel push"):
            one.follow(address)
        first = original.publish(address)
        assert (first.generation, first.tracks > 0) == (1, True)
        assert original.publish(address) == PublicationReport(1, 0, 0)
        one.follow(address)
        assert one.is_replica
        assert answers(one) == answers(original)
        assert digest_of(one.store) == digest_of(original.store)
        assert [bank.name for bank in one.banks.list()] == ["words"]
        add_film(original, tmp_path / "films" / "new.mp4", 77)
        original.remove(tmp_path / "films" / "sea.mp4")
        changed = original.publish(address)
        assert changed.generation == 2
        assert changed.rows > 0
        assert 0 < one.follow(address).rows < first.rows
        assert answers(one) == answers(original)
        assert digest_of(one.store) == digest_of(original.store)
        with opened(tmp_path / "b") as two:  # a replica that starts at generation 2
            two.follow(address)
            assert digest_of(two.store) == digest_of(original.store)
        assert sorted(one.store.track_files.all()) == sorted(original.store.track_files.all())
        with pytest.raises(LibraryError, match="replica"):
            one.publish(address)
        with pytest.raises(LibraryError, match="library of its own"):
            original.follow(address)


def test_another_library_does_not_take_the_name(postgresql, tmp_path):
    for name in ("one", "two"):
        build(tmp_path / name / "films", tmp_path / name / "library")
    with opened(tmp_path / "one" / "library") as first, opened(tmp_path / "two" / "library") as second:
        first.publish(published(postgresql, "taken"))
        with pytest.raises(LibraryError, match="another library is published"):
            second.publish(published(postgresql, "taken"))


def test_a_hostile_server_changes_no_setting_and_names_no_path(postgresql, tmp_path):
    import psycopg

    build(tmp_path / "films", tmp_path / "library")
    address = published(postgresql, "hostile")
    with opened(tmp_path / "library") as original, opened(tmp_path / "replica") as replica:
        original.store.set_setting("index", "milvus://vectors.example.org")
        original.publish(address)
        replica.follow(address)
        assert replica.index_server() is None
        own = {"serve.token": "mine", "index": postgresql.url}
        for name, value in own.items():
            replica.store.set_setting(name, value)
        before = digest_of(replica.store)
        library = original.store.setting("library id")

        def attack(statement, *values):
            with psycopg.connect(postgresql.url, autocommit=True) as connection:
                connection.execute(statement, values)

        def offer(table, rows):
            """Publish a catalogue with other rows in one table."""
            packed = pack({**{name: read_rows(original.store, name) for name in KEYS}, table: rows})
            digest = hashlib.sha256(packed).hexdigest()
            attack("UPDATE wordreel_catalogues SET data = %s WHERE library = %s", packed, library)
            attack(
                "UPDATE wordreel_publications SET generation = generation + 1, digest = %s "
                "WHERE library = %s",
                digest, library,
            )  # fmt: skip

        settings = read_rows(original.store, "settings")
        offer("settings", [*settings, ("serve.token", "theirs"), ("tracks", "s3://theirs/tracks")])
        replica.follow(address)
        assert {name: replica.store.setting(name) for name in own} == own
        assert replica.store.setting("tracks") is None
        columns = [row[1] for row in original.store.catalogue.rows("PRAGMA table_info(tracks)")]
        place = columns.index("hash")
        tracks = read_rows(original.store, "tracks")
        offer("tracks", [(*row[:place], row[place] and "../../x", *row[place + 1 :]) for row in tracks])
        with pytest.raises(LibraryError, match="does not name a track"):
            replica.follow(address)
        offer("words", [("1", 2, 3)])
        with pytest.raises(LibraryError, match="cannot be read"):
            replica.follow(address)
        assert digest_of(replica.store) == before
        offer("settings", settings)
    with opened(tmp_path / "other") as late:
        attack("UPDATE wordreel_track_files SET data = data || '!' WHERE library = %s", library)
        with pytest.raises(LibraryError, match="is damaged"):
            late.follow(address)
        assert list(late.store.track_files.all()) == []


def test_a_server_killed_while_a_library_is_published(postgresql, tmp_path, monkeypatch):
    build(tmp_path / "films", tmp_path / "library")
    address = published(postgresql, "killed")
    send = publication._send_catalogue

    def dying(*arguments):
        send(*arguments)
        postgresql.kill()

    with opened(tmp_path / "library") as original, opened(tmp_path / "replica") as replica:
        original.publish(address)
        replica.follow(address)
        before = digest_of(replica.store)
        add_film(original, tmp_path / "films" / "new.mp4", 78)
        monkeypatch.setattr(publication, "_send_catalogue", dying)
        with pytest.raises(IndexServerError):
            original.publish(address)
        postgresql.start()
        replica.follow(address)
        assert digest_of(replica.store) == before  # the old publication, whole
        monkeypatch.undo()
        original.publish(address)
        replica.follow(address)
        assert digest_of(replica.store) == digest_of(original.store)


@contextmanager
def serving(folder, address, index):
    """A `wordreel serve` process of its own; yields how to search with it."""
    port = free_port()
    script = Path(__file__).with_name("serve_colours.py")
    process = subprocess.Popen(
        [sys.executable, script, "serve", "-L", folder, "--port", str(port), "--follow", address, *index],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )

    def search(text):
        query = urllib.parse.urlencode({"text": text, "limit": 20})
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/search?{query}", timeout=30) as response:
            return [Path(hit["path"]).name for hit in json.load(response)["hits"]]

    try:
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            try:
                search("red")
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield search
    finally:
        process.terminate()
        process.wait()


def test_two_servers_answer_from_one_published_library(postgresql, tmp_path):
    pytest.importorskip("uvicorn")
    build(tmp_path / "films", tmp_path / "library")
    address = published(postgresql, "served")
    with opened(tmp_path / "library") as original:
        original.publish(address)
        expected = [Path(hit.path).name for hit in original.search("red", limit=20)]
        with (
            serving(tmp_path / "a", address, ["--index", postgresql.url]) as one,
            serving(tmp_path / "b", address, []) as two,
        ):
            assert one("red") == two("red") == expected
            add_film(original, tmp_path / "films" / "new.mp4", 79)
            original.publish(address)
            expected = [Path(hit.path).name for hit in original.search("red", limit=20)]
            assert "new.mp4" in expected
            deadline = time.monotonic() + 90
            while not one("red") == two("red") == expected:
                assert time.monotonic() < deadline
                time.sleep(0.5)
