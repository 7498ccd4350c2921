"""The front of the decoders: containers, pictures and sounds with changed headers, through the fence."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
from tests.fuzz.engine import Broken, Session, Target
from tests.fuzz.mutations import NUMBERS, WORDS, mutate_bytes
from tests.media import make

from wordreel.media import Fence
from wordreel.media.types import AudioNeed, FrameNeed, Limits, Sound

LIMITS = Limits(pixels=1_000_000, seconds=600.0, memory_bytes=2 * 2**30, wall_floor=10.0, wall_per_second=0.5)
VIDEOS = (".mp4", ".webm", ".mkv", ".avi", ".gif")
PICTURES = (".png", ".jpg", ".webp", ".bmp")
SOUNDS = (".wav", ".mp3", ".flac", ".ogg")
MARKS = (
    b"moov",
    b"trak",
    b"stsd",
    b"stsz",
    b"stco",
    b"mdat",
    b"elst",
    b"IHDR",
    b"IDAT",
    b"\xff\xc0",
    b"fmt ",
    b"data",
    b"LIST",
    b"strf",
    b"\x1a\x45\xdf\xa3",
    b"\x18\x53\x80\x67",
    b"\x16\x54\xae\x6b",
    b"OggS",
    b"fLaC",
    b"ID3",
)


def media_session(folder: Path) -> Session:
    seeds = [
        make.video(folder / f"a{ending}", seconds=0.5, rate=4, size=(32, 24)).read_bytes()
        for ending in VIDEOS
    ]
    seeds += [make.still(folder / f"a{ending}").read_bytes() for ending in PICTURES]
    seeds += [make.sound(folder / f"a{ending}", seconds=0.3).read_bytes() for ending in SOUNDS]
    fence = Fence(LIMITS)
    path = folder / "input"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        info = fence.probe(path)
        if not (math.isfinite(info.duration) and 0 <= info.duration <= LIMITS.seconds):
            raise Broken(f"a duration of {info.duration} seconds")
        for window in fence.stream(path, [FrameNeed(2.0, 16), AudioNeed(8000)]):
            for part in window.parts:
                if isinstance(part, Sound) and not np.abs(part.samples).max(initial=0.0) < 1e4:
                    raise Broken("sound that is no sound")

    return Session(seeds, run, mutate, fence.close)


def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Half of the time a number just behind the name of a box, a chunk or an element."""
    found = [data.find(mark) for mark in MARKS]
    spots = [at for at in found if at >= 0]
    if not spots or rng.random() < 0.5:
        return mutate_bytes(rng, data, corpus, (*WORDS, *MARKS))
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.choice(spots) + rng.randrange(-8, 64)
        order, kind = rng.choice("<>"), rng.choice("BHIQ")
        number = rng.choice(NUMBERS) % 2 ** (8 * struct.calcsize(kind))
        if 0 <= at < len(changed) - 8:
            struct.pack_into(order + kind, changed, at, number)
    return bytes(changed)


TARGETS = (
    Target("media", "containers, pictures and sounds through the fence", media_session, programs=True, few=8),
)
