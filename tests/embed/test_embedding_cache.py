"""The cache of embeddings: what was committed is there, what was not is not."""

import os
import subprocess
import sys

import numpy as np
import pytest
from tests.fakes import FakeFence, experts, write_media

from wordreel.embed import embedding_cache as module
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.errors import FingerprintMismatch, LibraryError
from wordreel.ingest.add import add
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify

NAMES = ("colour", "talk")


@pytest.fixture
def filled(store, media):
    for i in range(3):
        write_media(media / f"{i}.mp4", seconds=60.0, seed=i)
    add(store, [media], experts(), FakeFence())
    return store


def rows(ids) -> tuple[np.ndarray, np.ndarray]:
    """Vectors that say which clip they belong to."""
    vectors = np.asarray(ids, np.float32)[:, None, None] + np.arange(2)[:, None] / 2 + np.zeros(5, np.float32)
    available = np.stack([np.ones(len(ids), bool), np.asarray(ids) % 2 == 0], axis=1)
    return vectors.astype(np.float32), available


def check(cache: EmbeddingCache, ids) -> None:
    gallery = cache.load()
    vectors, available = rows(ids)
    assert gallery.ids.tolist() == list(ids)
    assert np.array_equal(gallery.available, available)
    assert np.array_equal(gallery.vectors, np.where(available[..., None], vectors, 0))


def test_append_load_missing(filled):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    everything = filled.clip_ids()
    assert cache.missing() == everything
    assert len(cache.load()) == 0
    cache.append(everything[:4], *rows(everything[:4]))
    check(cache, everything[:4])
    assert cache.missing() == everything[4:]
    again = EmbeddingCache(filled, "f1", NAMES, 5)
    again.append(everything[4:], *rows(everything[4:]))
    check(again, everything)
    assert isinstance(again.load().vectors, np.memmap)
    assert verify(filled) == []
    assert EmbeddingCache(filled, "f2", NAMES, 5).missing() == everything, "another model starts from nothing"


def test_removed_clips_disappear(filled, media):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    everything = filled.clip_ids()
    cache.append(everything, *rows(everything))
    filled.remove([media / "1.mp4"])
    left = filled.clip_ids()
    assert 0 < len(left) < len(everything)
    check(cache, left)
    assert cache.compact() == len(everything) - len(left)
    assert cache.compact() == 0
    check(cache, left)
    cache.drop(left[:2])
    check(cache, left[2:])
    assert cache.missing() == left[:2]
    assert verify(filled) == []
    assert len(list(cache.folder.glob("*.bin"))) == 4


@pytest.mark.parametrize("stop", range(6))
def test_interrupted_append_counts_for_nothing(filled, monkeypatch, stop):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    everything = filled.clip_ids()
    cache.append(everything[:3], *rows(everything[:3]))
    steps = [0]

    def step(real):
        def run(*args):
            if steps[0] == stop:
                raise KeyboardInterrupt
            steps[0] += 1
            return real(*args)

        return run

    for name in ("append_and_sync", "sync_dir", "atomic_write"):
        monkeypatch.setattr(module, name, step(getattr(module, name)))
    with pytest.raises(KeyboardInterrupt):
        cache.append(everything[3:], *rows(everything[3:]))
    monkeypatch.undo()
    check(cache, everything[:3])
    assert verify(filled) == []
    cache.append(everything[3:], *rows(everything[3:]))
    check(cache, everything)
    assert verify(filled) == []


def test_killed_append_leaves_the_rows_before(filled):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    everything = filled.clip_ids()
    cache.append(everything[:2], *rows(everything[:2]))
    code = (
        "import os, sys, numpy as np\n"
        "from wordreel.catalogue.store import LibraryStore\n"
        "from wordreel.embed.embedding_cache import EmbeddingCache\n"
        "from wordreel.embed import embedding_cache as embeddings\n"
        "embeddings.atomic_write = lambda *a: os.kill(os.getpid(), 9)\n"
        "s = LibraryStore.open(sys.argv[1])\n"
        "c = EmbeddingCache(s, 'f1', ('colour', 'talk'), 5)\n"
        "m = c.missing()\n"
        "c.append(m, np.ones((len(m), 2, 5), np.float32), np.ones((len(m), 2), bool))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(filled.path)], timeout=60, check=False)
    assert done.returncode == -9
    assert os.path.getsize(cache.folder / "ids-0.bin") == 8 * len(everything)  # noqa: PTH202
    check(cache, everything[:2])
    cache.append(everything[2:], *rows(everything[2:]))
    check(cache, everything)
    assert verify(filled) == []


def test_mixing_is_refused_with_the_way_out(filled):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    ids = filled.clip_ids()
    cache.append(ids[:1], *rows(ids[:1]))
    with pytest.raises(FingerprintMismatch, match="wordreel reindex"):
        EmbeddingCache(filled, "f1", NAMES, 6)
    with pytest.raises(FingerprintMismatch):
        EmbeddingCache(filled, "f1", ("talk", "colour"), 5)
    with pytest.raises(ValueError, match="twice"):
        cache.append(ids[:1], *rows(ids[:1]))
    with pytest.raises(ValueError, match="finite"):
        cache.append(ids[1:2], np.full((1, 2, 5), np.nan, np.float32), np.ones((1, 2), bool))
    with pytest.raises(ValueError, match="expected vectors"):
        cache.append(ids[1:2], np.zeros((1, 2, 4), np.float32), np.ones((1, 2), bool))
    check(cache, ids[:1])


def test_damage_is_found_and_mended(filled):
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    ids = filled.clip_ids()
    cache.append(ids, *rows(ids))
    path = cache.folder / "vectors-0.bin"
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)
    problems = verify(filled)
    assert [p.kind for p in problems] == ["cache"]
    assert repair(filled, problems) == []
    assert cache.missing() == ids
    cache.append(ids, *rows(ids))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LibraryError, match="wordreel reindex"):
        cache.load()
    cache.clear()
    assert verify(filled) == []
    assert cache.missing() == ids


def test_a_first_append_that_was_killed_is_no_damage(filled):
    """The rows are there, the manifest that makes them count is not."""
    cache = EmbeddingCache(filled, "f1", NAMES, 5)
    ids = filled.clip_ids()
    cache.append(ids[:2], *rows(ids[:2]))
    (cache.folder / "manifest.json").unlink()
    assert [p.kind for p in verify(filled)] == ["unfinished"]
    assert cache.missing() == ids
    cache.append(ids, *rows(ids))
    assert verify(filled) == []
    check(cache, ids)
