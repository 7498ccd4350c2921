"""The whole program killed again and again: real files, real decoding, real experts, real embeddings."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.digest import digest_of

from wordreel.demo.film import title_card, write_film
from wordreel.embed.embed_library import embedding_cache
from wordreel.library import Library
from wordreel.maintain.verify import verify

KILLS = 50
EXPERTS = "clip,faces,ocr,shots,sound"


def add(library: Path, media: Path) -> subprocess.Popen:
    program = "from wordreel.cli import main; main()"
    words = ["add", str(media), "--library", str(library), "--experts", EXPERTS, "--json"]
    return subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def contents_and_vectors(library: Library) -> dict[tuple, np.ndarray]:
    """Every clip's embedding under a name that does not depend on the order of adding."""
    gallery = embedding_cache(library.store, library.model).load()
    clips = {clip.id: clip for clip in library.store.clips()}
    return {
        (clips[int(number)].content, clips[int(number)].start, clips[int(number)].whole): np.asarray(vectors)
        for number, vectors in zip(gallery.ids, gallery.vectors, strict=True)
    }


@pytest.mark.slow
def test_kill_the_program_fifty_times(tmp_path):
    rng = random.Random(4)
    media = tmp_path / "media"
    media.mkdir()
    for number in range(24):
        tone = np.sin(np.arange(22050 * 4) * (0.02 + 0.004 * number)).astype(np.float32) / 2
        card = title_card([f"Chapter {number}", "of the story"], 4, (9 * number, 40, 90))
        write_film(media / f"{number:02}.mp4", card, (tone, 22050))
    (media / "broken.mp4").write_bytes(b"\x00" * 4096)
    began = time.monotonic()
    assert add(tmp_path / "whole", media).wait() == 0
    usual = time.monotonic() - began

    killed = finished = 0
    library = tmp_path / "killed"
    while killed < KILLS:
        process = add(library, media)
        try:
            process.wait(timeout=rng.uniform(0.0, usual))
            finished += 1
            for path in rng.sample(sorted(media.iterdir()), 8):  # something new to do: eight files move
                path.rename(media / f"{finished:02}-{path.name[-12:]}")
            if finished % 2:  # and every other time everything is to be done again
                Library(library).remove(media)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    assert add(library, media).wait() == 0
    assert add(tmp_path / "again", media).wait() == 0

    mended, fresh = Library(library, create=False), Library(tmp_path / "again", create=False)
    mended.remove_missing()
    assert [problem for problem in verify(mended.store) if not problem.note] == []
    assert digest_of(mended.store) == digest_of(fresh.store)
    got, expected = contents_and_vectors(mended), contents_and_vectors(fresh)
    assert got.keys() == expected.keys()
    for key, vectors in expected.items():
        np.testing.assert_array_equal(got[key], vectors)
