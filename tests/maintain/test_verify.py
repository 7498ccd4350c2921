"""Each promise, broken on purpose: found, mended, and as good as new after the next add."""

import subprocess
import sys

import numpy as np
import pytest
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, experts, write_media
from tests.lines import lines_with

from wordreel.catalogue.lock import writer_at_work
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.errors import LibraryError
from wordreel.ingest.add import add
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify
from wordreel.types import Track
from wordreel.util.checksum import write_checksums

HOLD = """
import sys
from pathlib import Path
from wordreel.catalogue.lock import writer_lock
with writer_lock(Path(sys.argv[1]) / "lock"):
    print(".", end="", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def filled(store, media):
    for i in range(4):
        write_media(media / f"{i}.mp4", seconds=50.0 + i, seed=i)
    add(store, [media], experts(), FakeFence())
    assert verify(store) == []
    return store


def _flip(store):
    path = store.track_files.path(store.tracks()[0].hash)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _delete(store):
    store.track_files.path(store.tracks()[0].hash).unlink()


def _shape(store):
    store.catalogue.run("UPDATE tracks SET rows = rows + 1 WHERE expert = 'colour'")


def _orphan(store):
    store.track_files.commit(store.track_files.stage(Track(np.ones((1, 1), np.float32), np.zeros((1, 2)))))


def _stray(store):
    (store.track_files.staging / "abc").write_bytes(b"half a track")


def _gap(store):
    store.catalogue.run(
        "DELETE FROM clips WHERE id = (SELECT id FROM clips WHERE NOT whole AND start > 0 LIMIT 1)"
    )


def _no_whole(store):
    store.catalogue.run("DELETE FROM clips WHERE id = (SELECT id FROM clips WHERE whole LIMIT 1)")


def _words(store):
    store.catalogue.run("INSERT INTO words_fts (words_fts) VALUES ('delete-all')")


def _unreferenced(store):
    store.catalogue.run("DELETE FROM files WHERE path = (SELECT min(path) FROM files)")


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (_flip, "track"),
        (_delete, "track"),
        (_shape, "track"),
        (_orphan, "orphan"),
        (_stray, "stray"),
        (_gap, "clips"),
        (_no_whole, "clips"),
        (_words, "words"),
        (_unreferenced, "unreferenced"),
    ],
)
def test_damage_is_found_mended_and_made_good(filled, media, damage, kind):
    before = digest_of(filled)
    damage(filled)
    problems = verify(filled)
    assert {p.kind for p in problems} == {kind}
    assert repair(filled, problems) == []
    assert verify(filled) == []
    add(filled, [media], experts(), FakeFence())
    assert verify(filled) == []
    assert digest_of(filled) == before
    assert len(lines_with(filled, ["dogs"])) == 4


def test_shallow_check_sees_missing_tracks(filled):
    _delete(filled)
    assert [p.kind for p in verify(filled, deep=False)] == ["track"]
    row = filled.tracks()[0]
    with pytest.raises(LibraryError, match="wordreel verify --repair"):
        filled.track(row.content, row.expert)


def test_dead_experts_are_noticed(store, media):
    class Constant(Colour):
        def extract(self, media):
            track = super().extract(media)
            return Track(np.full_like(track.values, 0.5), track.times)

    class Same(Colour):
        def extract(self, media):
            track = super().extract(media)
            return Track(np.tile(np.arange(4, dtype=np.float32), (len(track), 1)), track.times)

    for i in range(4):
        write_media(media / f"{i}.mp4", seconds=30.0 + i, seed=i)
    add(store, [media], [Constant("constant"), Same("same"), Colour()], FakeFence())
    found = [p.what for p in verify(store)]
    assert sum("constant returned one constant" in w for w in found) == 4
    assert any("expert same returned the same rows for 4 of 4" in w for w in found)
    assert not any("colour" in w for w in found)


def test_changed_files_are_notes(filled, media):
    write_media(media / "0.mp4", seconds=1000.0, seed=77)
    (media / "1.mp4").unlink()
    problems = verify(filled)
    assert {(p.kind, p.note, p.repairable) for p in problems} == {
        ("changed", True, False),
        ("gone", True, False),
    }
    assert repair(filled, problems) == problems


def test_next_writer_sweeps_after_a_death(filled):
    _orphan(filled)
    _stray(filled)
    (filled.path / "lock").write_text("12345\n")  # as a killed writer leaves it
    with filled.writing():
        pass
    assert verify(filled) == []
    assert (filled.path / "lock").read_text() == ""


def test_a_damaged_index_is_found_and_removed(filled):
    ids = filled.clip_ids()
    cache = EmbeddingCache(filled, "f", ("all",), 2)
    cache.append(ids, np.ones((len(ids), 1, 2), np.float32), np.ones((len(ids), 1), bool))
    folder = cache.folder / "index" / "int8-0-4"
    folder.mkdir(parents=True)
    (folder / "codes.bin").write_bytes(bytes(100))
    write_checksums(folder)
    assert verify(filled) == []
    (folder / "codes.bin").write_bytes(b"x" + bytes(99))
    (problem,) = verify(filled)
    assert (problem.kind, problem.repairable) == ("cache", True)
    assert repair(filled, [problem]) == []
    assert not (cache.folder / "index").exists()
    assert verify(filled) == []
    assert len(cache.raw()) == len(ids)  # the embeddings stay


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("UPDATE words SET start = 'a'", "of words hold a start that is not REAL"),
        ("UPDATE contents SET duration = x'00'", "of contents hold a duration that is not REAL"),
        ("UPDATE clips SET shot = 0.5", "of clips hold a shot that is not INTEGER"),
        ("UPDATE files SET path = 'x' || hex(path)", "of files hold a path that is not BLOB"),
    ],
)
def test_values_of_another_type_are_reported(filled, change, what):
    filled.catalogue.run(change)
    found = [p.what for p in verify(filled, deep=False) if p.kind == "database" and not p.repairable]
    assert any(what in text for text in found)


def test_nothing_embedded_is_no_problem(store, media):
    """Opening the embeddings of an empty library leaves no folder that looks half-written."""
    EmbeddingCache(store, "model", ("all",), 3).open()
    assert verify(store) == []


def test_a_writer_at_work_left_nothing_behind(filled):
    """The files of a writer at work look like those of a killed one; they are not called left behind."""
    _orphan(filled)
    _stray(filled)
    assert {problem.kind for problem in verify(filled)} == {"orphan", "stray"}
    with filled.writing():  # this process
        assert verify(filled) == []
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(filled.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout.read(1) == b"."
        assert verify(filled) == []
        assert writer_at_work(filled.path / "lock")
    finally:
        child.communicate()
    assert not writer_at_work(filled.path / "lock")
    assert {problem.kind for problem in verify(filled)} == {"orphan", "stray"}


def test_asking_for_the_writer_does_not_release_the_lock(filled):
    ask = "import sys; from pathlib import Path; from wordreel.catalogue.lock import writer_at_work as w; "
    ask += "print(w(Path(sys.argv[1]) / 'lock'))"
    with filled.writing():
        assert writer_at_work(filled.path / "lock")
        seen = subprocess.run(
            [sys.executable, "-c", ask, str(filled.path)], capture_output=True, text=True, check=True
        ).stdout
    assert seen == "True\n"
