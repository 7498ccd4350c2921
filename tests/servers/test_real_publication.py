"""A library published in a real PostgreSQL, and servers that answer from it."""

from __future__ import annotations

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
from tests.example_library import ColourModel, build
from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.servers.real_servers import free_port

import wordreel
from wordreel.embed.embed_library import embed_library
from wordreel.errors import IndexServerError, LibraryError
from wordreel.ingest.add import add
from wordreel.maintain import publish
from wordreel.maintain.publication import PublicationReport

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
        assert one.store.digest() == original.store.digest()
        assert [bank.name for bank in one.banks.list()] == ["words"]
        add_film(original, tmp_path / "films" / "new.mp4", 77)
        original.remove(tmp_path / "films" / "sea.mp4")
        changed = original.publish(address)
        assert changed.generation == 2
        assert 0 < changed.rows < first.rows
        one.follow(address)
        assert answers(one) == answers(original)
        assert one.store.digest() == original.store.digest()
        with opened(tmp_path / "b") as two:  # a replica that starts at generation 2
            two.follow(address)
            assert two.store.digest() == original.store.digest()
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
        before = replica.store.digest()
        library = original.store.setting("library id")

        def attack(statement, *values):
            with psycopg.connect(postgresql.url, autocommit=True) as connection:
                connection.execute(statement, values)
                connection.execute(
                    "UPDATE wordreel_libraries SET generation = generation + 1 WHERE library = %s", (library,)
                )

        insert = "INSERT INTO wordreel_catalogue_settings VALUES (%s, %s, %s, 1000, %s)"
        attack(insert, library, "serve.token", "theirs", False)
        attack(insert, library, "tracks", "s3://theirs/tracks", False)
        attack(insert, library, "index", "", True)
        replica.follow(address)
        assert {name: replica.store.setting(name) for name in own} == own
        assert replica.store.setting("tracks") is None
        attack("UPDATE wordreel_catalogue_tracks SET hash = '../../x', changed = 1000 WHERE library = %s "
               "AND hash IS NOT NULL", library)  # fmt: skip
        with pytest.raises(LibraryError, match="does not name a track"):
            replica.follow(address)
        assert replica.store.digest() == before
    with opened(tmp_path / "other") as late:
        attack("UPDATE wordreel_track_files SET data = data || '!' WHERE library = %s", library)
        with pytest.raises(LibraryError, match="is damaged"):
            late.follow(address)
        assert list(late.store.track_files.all()) == []


def test_a_server_killed_while_a_library_is_published(postgresql, tmp_path, monkeypatch):
    build(tmp_path / "films", tmp_path / "library")
    address = published(postgresql, "killed")
    send, count = publish._send_rows, 0

    def dying(*arguments):
        nonlocal count
        count += 1
        if count == 4:
            postgresql.kill()
        return send(*arguments)

    with opened(tmp_path / "library") as original, opened(tmp_path / "replica") as replica:
        original.publish(address)
        replica.follow(address)
        before = replica.store.digest()
        add_film(original, tmp_path / "films" / "new.mp4", 78)
        monkeypatch.setattr(publish, "_send_rows", dying)
        with pytest.raises(IndexServerError):
            original.publish(address)
        postgresql.start()
        replica.follow(address)
        assert replica.store.digest() == before  # the old publication, whole
        original.publish(address)
        replica.follow(address)
        assert replica.store.digest() == original.store.digest()


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
