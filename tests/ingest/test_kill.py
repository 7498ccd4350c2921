"""Killed at any moment, the library is sound, and the next run ends where an unkilled one would have."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from tests.digest import digest_of
from tests.fakes import MAGIC, Colour, FakeFence, Talk, experts, write_media
from tests.media_files import video

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.media import Fence

LEFTOVERS = {"orphan", "stray", "unreferenced", "unfinished"}  # what a killed writer may leave behind


def fill(media: Path, decoder: str) -> None:
    if decoder == "real":
        for i in range(4):
            video(media / f"{i}.mp4", seconds=2.0 + i)
        return
    for i in range(9):
        write_media(media / f"{i:02}.mp4", seconds=20.0 + 40 * i, seed=i)
    shutil.copy(media / "01.mp4", media / "copy.mp4")
    write_media(media / "bad.mp4", bad="broken")


def alter(media: Path, step: int) -> None:
    """Give the next runs something to do: a move, a copy, and a change every other time."""
    rng = random.Random(step)
    rng.choice(sorted(media.iterdir())).rename(media / f"moved{step}.mp4")
    shutil.copy(rng.choice(sorted(media.iterdir())), media / f"new{step}.mp4")
    changed = rng.choice(sorted(media.iterdir()))
    if step % 2 and changed.read_bytes().startswith(MAGIC):
        write_media(changed, seconds=100.0 + step, seed=1000 + step)


def run(library: Path, media: Path, decoder: str, kill_after: float) -> bool:
    """Build in a process of its own, and kill it that long after it began; whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            build(library, media, decoder)
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + kill_after
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return False
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return status != 0


def build(library: Path, media: Path, decoder: str) -> None:
    with LibraryStore.create_or_open(library) as store:
        if decoder == "real":
            with Fence() as fence:
                add(store, [media], [Colour(rate=5.0), Talk(rate=16000)], fence)
        else:
            add(store, [media], experts(), FakeFence(delay=0.002))
        cache = EmbeddingCache(store, "model", ("all",), 3)
        cache.compact()
        while ids := cache.missing()[:20]:
            cache.append(ids, np.array([[[i, 1, 2]] for i in ids], np.float32), np.ones((len(ids), 1), bool))


def check_cache(store: LibraryStore) -> None:
    gallery = EmbeddingCache(store, "model", ("all",), 3).load()
    assert np.array_equal(gallery.vectors[:, 0, 0], gallery.ids.astype(np.float32))


def kill_often(tmp_path: Path, kills: int, decoder: str, seed: int) -> None:
    rng = random.Random(seed)
    media, library = tmp_path / "media", tmp_path / "library"
    media.mkdir()
    fill(media, decoder)
    began = time.monotonic()
    build(tmp_path / "first", media, decoder)
    usual = time.monotonic() - began
    killed = step = 0
    while killed < kills:
        was_killed = run(library, media, decoder, rng.uniform(0.0, usual))
        killed += was_killed
        if (library / "catalogue.sqlite").exists():
            with LibraryStore.create_or_open(library) as store:
                assert {p.kind for p in verify(store) if not p.note} <= LEFTOVERS
                check_cache(store)
        if not was_killed:
            step += 1
            alter(media, step)
    build(library, media, decoder)
    build(tmp_path / "unkilled", media, decoder)
    with LibraryStore.open(library) as store, LibraryStore.open(tmp_path / "unkilled") as other:
        store.remove_missing()
        assert verify(store) == []
        assert digest_of(store) == digest_of(other)
        check_cache(store)
        assert EmbeddingCache(store, "model", ("all",), 3).missing() == []


def test_kill_eight_times(tmp_path):
    kill_often(tmp_path, 8, "fake", seed=1)


@pytest.mark.slow
def test_kill_fifty_times(tmp_path):
    kill_often(tmp_path, 50, "fake", seed=2)


@pytest.mark.slow
def test_kill_with_real_decoding(tmp_path):
    kill_often(tmp_path, 20, "real", seed=3)
