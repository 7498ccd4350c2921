"""Columns of clips: whatever happens to a library, they say what its catalogue says."""

import json

import numpy as np
import pytest
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.remove import changes_since
from wordreel.catalogue.store import LibraryStore
from wordreel.embed import columns as module
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.ingest.add import add
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify


def rows(ids):
    return np.ones((len(ids), 1, 2), np.float32), np.ones((len(ids), 1), bool)


def cache_of(store):
    return EmbeddingCache(store, "f", ("all",), 2)


def embed(store, some=None):
    cache = cache_of(store)
    missing = cache.missing()[:some]
    cache.append(missing, *rows(missing))


def check(store):
    """The columns against a walk over all clips of the catalogue."""
    gallery, columns = cache_of(store).open()
    known = {clip.id: clip for clip in store.clips()}
    live = [int(number) in known for number in gallery.ids]
    assert columns.live.tolist() == live
    assert columns.dead.tolist() == [row for row, alive in enumerate(live) if not alive]
    for row, number in enumerate(gallery.ids.tolist()):
        if live[row]:
            assert columns[row] == known[number]
    contents = sorted({clip.content for clip in known.values()})
    numbers = columns.numbers([*contents, "nothing", "z" * 80])
    assert numbers[len(contents) :].tolist() == [-1, -1]
    for content, number in zip(contents, numbers.tolist(), strict=False):
        mine = [row for row, at in enumerate(live) if at and columns[row].content == content]
        assert np.flatnonzero((columns.video == number) & columns.live).tolist() == mine
        assert not mine or columns.content(number) == content
    have = set(gallery.ids.tolist())
    assert cache_of(store).missing() == [number for number in store.clip_ids() if number not in have]
    return columns


@pytest.fixture
def filled(store, media):
    for i in range(4):
        write_media(media / f"{i}.mp4", seconds=50.0, seed=i)
    add(store, [media], experts(), FakeFence())
    return store


def saved(store):
    return (cache_of(store).folder / "live.json").read_bytes()


def test_adds_and_removals_change_only_what_they_concern(filled, media, monkeypatch):
    embed(filled)
    check(filled)
    before = saved(filled)
    monkeypatch.setattr(module.Liveness, "_save", None)
    check(filled)  # nothing changed, nothing is written
    monkeypatch.undo()
    assert saved(filled) == before
    write_media(media / "new.mp4", seconds=40.0, seed=9)
    add(filled, [media], experts(), FakeFence())
    check(filled)
    embed(filled, 2)  # a video whose clips come in two appends stays one video
    check(filled)
    embed(filled)
    check(filled)
    filled.remove([media / "2.mp4", media / "new.mp4"])
    check(filled)
    write_media(media / "0.mp4", seconds=30.0, seed=20)  # another content under the same path
    add(filled, [media], experts(), FakeFence())
    embed(filled)
    check(filled)
    assert verify(filled) == []


def test_a_content_without_a_file_is_hidden_until_it_has_one_again(filled):
    embed(filled, 5)
    check(filled)
    partly = filled.clip(int(cache_of(filled).raw().ids[-1])).content  # embedded in part
    path, content, *rest = filled.catalogue.one("SELECT * FROM files WHERE content = ?", partly)
    filled.catalogue.run("DELETE FROM files WHERE path = ?", path)
    before = check(filled)
    embed(filled)
    filled.catalogue.run(f"INSERT INTO files VALUES (?, ?{', ?' * len(rest)})", path, content, *rest)  # noqa: S608
    after = check(filled)  # its clips that were not embedded are missing
    assert len(after.dead) < len(before.dead)


@pytest.mark.parametrize("harm", ["syntax", "gone", "rows", "dead", "kind", "rewritten"])
def test_what_was_checked_is_checked_again_where_it_cannot_be_right(filled, media, harm):
    embed(filled)
    check(filled)
    filled.remove([media / "1.mp4"])
    check(filled)
    path = cache_of(filled).folder / "live.json"
    values = json.loads(path.read_bytes())
    if harm == "rewritten":
        cache_of(filled).compact()
    elif harm == "gone":
        path.unlink()
    elif harm == "syntax":
        path.write_text("{")
    else:
        change = {"rows": {"rows": 10**6}, "dead": {"dead": [10**6]}, "kind": {"dead": "x"}}[harm]
        path.write_text(json.dumps({**values, **change}))
    check(filled)
    check(filled)
    assert verify(filled) == []


@pytest.mark.parametrize("busy", [False, True])
def test_a_cache_of_an_earlier_version_gets_its_columns(filled, media, busy):
    """It had no clips beside its vectors, but columns in a folder of their own."""
    embed(filled)
    filled.remove([media / "1.mp4"])
    folder = cache_of(filled).folder
    expected = check(filled)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["checksums"].pop()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "live.json").unlink()
    next(folder.glob("clips-*.bin")).unlink()
    (folder / "columns").mkdir()
    assert verify(filled) == []
    if busy:
        with LibraryStore.open(filled.path) as other, other.writing():
            assert check(filled).dead.tolist() == expected.dead.tolist()
    else:
        assert cache_of(filled).compact(waste=1.0) == 0
        assert not (folder / "columns").exists()
    assert check(filled).dead.tolist() == expected.dead.tolist()
    write_media(media / "new.mp4", seconds=40.0, seed=9)
    add(filled, [media], experts(), FakeFence())
    embed(filled)
    check(filled)
    assert verify(filled) == []


def test_verify_finds_columns_that_are_not_what_was_written(filled):
    embed(filled)
    check(filled)
    victim = next(cache_of(filled).folder.glob("clips-*.bin"))
    victim.write_bytes(b"\xff" * victim.stat().st_size)
    _, columns = cache_of(filled).open()
    assert columns.numbers(["x"]).tolist() == [-1]
    assert len(columns.content(0)) == 64
    problems = verify(filled)
    assert [problem.kind for problem in problems] == ["cache"]
    repair(filled, problems)
    embed(filled)
    check(filled)


def test_a_reader_works_while_another_process_writes(filled, media):
    embed(filled)
    check(filled)
    with LibraryStore.open(filled.path) as other, other.writing():
        filled_now = saved(filled)
        other.remove([media / "3.mp4"])
        check(filled)
        assert saved(filled) == filled_now, "the writer holds the lock: nothing is saved"
    check(filled)
    assert saved(filled) != filled_now


def test_the_log_says_which_clips_left(filled, media):
    assert changes_since(filled.catalogue, 0).removed == []
    gone = [clip.id for clip in filled.clips(filled.file(media / "1.mp4").content)]
    filled.remove([media / "1.mp4"])
    changes = changes_since(filled.catalogue, 0)
    assert sorted(changes.removed) == gone
    assert changes.hidden == []
    assert changes_since(filled.catalogue, changes.number).removed == []


def test_columns_of_another_catalogue_are_built_anew(filled, media):
    embed(filled)
    filled.remove([media / "1.mp4"])
    check(filled)
    filled.catalogue.run("DELETE FROM removed_clips")
    filled.catalogue.run("DELETE FROM sqlite_sequence WHERE name = 'removed_clips'")
    check(filled)


def test_many_clips_are_read_in_pieces(filled, monkeypatch):
    monkeypatch.setattr(module, "READ_AT_ONCE", 3)
    embed(filled)
    check(filled)
