"""Catalogues of every version open, are brought up to date, and keep what they hold."""

import sqlite3

import pytest
from tests.lines import lines_with

from wordreel.catalogue.connection import NAME, Migration, migrate, migrations, version
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError
from wordreel.maintain.verify import verify

CONTENT = "c" * 64
FILM = "/films/VID-20190714-WA0003.mp4"


def at_version(path, number: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, migrations()[:number])
    connection.execute(
        "INSERT INTO contents (content, size, kind, container, duration, width, height, rotation, frame_rate,"
        " video_codec, audio_codec, sample_rate, added_at)"
        " VALUES (?, 9, 'video', 'mp4', 5.0, 4, 4, 0, 25.0, 'h264', '', 0, 0.0)",
        (CONTENT,),
    )
    connection.execute(
        "INSERT INTO files (path, content, size, mtime_ns, ctime_ns, inode, checked_ns, added_at)"
        " VALUES (?, ?, 9, 1, 1, 1, 1, 0.0)",
        (FILM.encode(), CONTENT),
    )
    connection.execute(
        "INSERT INTO tracks VALUES (?, 'speech', 'f', 'absent', NULL, 'quiet', 0, 0)", (CONTENT,)
    )
    connection.execute(
        "INSERT INTO words VALUES (NULL, ?, 'speech', 0, 1, 'Hello dogs', 1)",
        (CONTENT,),
    )
    connection.execute("INSERT INTO clips (content, start, end, whole) VALUES (?, 0, 5, 1)", (CONTENT,))
    assert version(connection) == number
    connection.close()


@pytest.mark.parametrize("number", range(1, len(migrations()) + 1))
def test_old_catalogues_open_with_everything_in_them(tmp_path, number):
    (tmp_path / "lib").mkdir()
    at_version(tmp_path / "lib" / NAME, number)
    with LibraryStore.open(tmp_path / "lib") as store:
        assert store.videos()[0].paths == (FILM,)
        if number < 12:  # dates are read from names and file times until `add` sees the files again
            assert (store.file(FILM).captured, store.file(FILM).captured_from) == ("2019-07-14", "file name")
            assert store.info(CONTENT).recorded is None
        assert [w.text for w in lines_with(store, ["dog"])] == ["Hello dogs"]
        assert [p.kind for p in verify(store)] == ["absent"]
        assert store.catalogue.rows("PRAGMA user_version") == [(len(migrations()),)]


def test_newer_catalogue_is_refused_untouched(tmp_path):
    LibraryStore.create_or_open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / NAME)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LibraryError, match="newer wordreel"):
        LibraryStore.open(tmp_path)
    assert sqlite3.connect(tmp_path / NAME).execute("PRAGMA user_version").fetchone() == (99,)


def test_failing_migration_changes_nothing():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    steps = [
        Migration(1, "good", "CREATE TABLE a (x);\n"),
        Migration(2, "bad", "CREATE TABLE b (x);\nNONSENSE;\n"),
    ]
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, steps)
    assert version(connection) == 1
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("a",)]


def test_every_migration_says_why():
    assert all(m.sql.startswith("-- ") for m in migrations())


def test_what_is_not_a_library(tmp_path):
    with pytest.raises(LibraryError, match="wordreel add"):
        LibraryStore.open(tmp_path)
    (tmp_path / NAME).write_bytes(b"this is no database, whatever it is called" * 100)
    with pytest.raises(LibraryError, match="damaged or is not"):
        LibraryStore.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LibraryError, match="choose another folder"):
        LibraryStore.create_or_open(tmp_path / "file" / "lib")
