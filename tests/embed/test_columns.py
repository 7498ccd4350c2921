"""Columns of clips: whatever happens to a library, they say what its catalogue says."""

import json

import numpy as np
import pytest
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.clip_log import changes_since
from wordreel.catalogue.store import LibraryStore
from wordreel.embed import columns as module
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.errors import LibraryError
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
            assert columns.clip(row) == known[number]
    contents = sorted({clip.content for clip in known.values()})
    numbers = columns.numbers([*contents, "nothing", "z" * 80])
    assert numbers[len(contents) :].tolist() == [-1, -1]
    for content, number in zip(contents, numbers.tolist(), strict=False):
        mine = [row for row, at in enumerate(live) if at and columns.clip(row).content == content]
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
    return json.loads((cache_of(store).folder / module.FOLDER / "manifest.json").read_bytes())


def test_adds_and_removals_change_only_what_they_concern(filled, media, monkeypatch):
    embed(filled)
    check(filled)
    build = saved(filled)["build"]
    monkeypatch.setattr(module.ColumnCache, "_build", None)  # from here on nothing is built from the start
    check(filled)
    assert saved(filled)["edit"] == 1, "nothing changed, nothing was written"
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
    assert saved(filled)["build"] == build
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


@pytest.mark.parametrize("harm", ["manifest", "short", "gone", "dead", "version", "rewritten"])
def test_a_damaged_cache_is_written_again(filled, media, harm):
    embed(filled)
    check(filled)
    filled.remove([media / "1.mp4"])
    check(filled)
    folder = cache_of(filled).folder / module.FOLDER
    manifest = folder / "manifest.json"
    if harm == "manifest":
        manifest.write_text("{")
    elif harm == "version":
        manifest.write_text(json.dumps({**saved(filled), "version": 99}))
    elif harm == "rewritten":
        cache_of(filled).compact()
    else:
        victim = next(folder.glob("dead-*.bin" if harm == "dead" else "clips-*.bin"))
        data = victim.read_bytes()
        if harm == "gone":
            victim.unlink()
        else:
            victim.write_bytes(data[:-1] if harm == "short" else bytes(len(data)))
    check(filled)
    check(filled)
    assert verify(filled) == []


def test_verify_finds_columns_that_are_not_what_was_written(filled):
    embed(filled)
    check(filled)
    victim = next((cache_of(filled).folder / module.FOLDER).glob("clips-*.bin"))
    victim.write_bytes(bytes(victim.stat().st_size))
    assert [problem.kind for problem in verify(filled)] == ["cache"]


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
    monkeypatch.setattr(module, "AT_ONCE", 3)
    embed(filled)
    check(filled)


def test_a_damaged_order_of_contents_is_reported_and_repaired(filled):
    embed(filled)
    check(filled)
    (path,) = (cache_of(filled).folder / module.FOLDER).glob("by_content-*.bin")
    path.write_bytes(b"\xff\x00\x00\x7f" * (len(path.read_bytes()) // 4))
    _, columns = cache_of(filled).open()
    with pytest.raises(LibraryError, match="columns of the library's clips are damaged") as caught:
        columns.numbers(["x"])
    (path,) = (cache_of(filled).folder / module.FOLDER).glob("contents-*.bin")
    path.write_bytes(b"\xff" * len(path.read_bytes()))
    for number in (0, 2**20):
        with pytest.raises(LibraryError, match="columns of the library's clips are damaged"):
            cache_of(filled).open()[1].content(number)
    assert caught.value.next_step.command == "verify --repair"
    repair(filled, verify(filled))
    embed(filled)
    check(filled)
