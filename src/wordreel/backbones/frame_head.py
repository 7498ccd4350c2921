"""The head of a fine-tuned model (CLIP4Clip, CLIP2Video): one vector of a clip's frame embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wordreel.backbones.config import HeadConfig
from wordreel.runtime.sessions import Network
from wordreel.types import Float32

BATCH = 64  # clips
LEAST = 3  # frames of a batch: CLIP2Video's head needs differences of every second one


def uniform_rows(count: int, most: int) -> list[int]:
    """Return evenly spaced rows of `count`, the first and the last among them: all where they are few.

    >>> uniform_rows(100, 4)
    [0, 33, 66, 99]
    """
    return [int(row) for row in np.linspace(0, count - 1, min(count, most))]


class FrameHead:
    """A graph from `frames [n, count, dim]` and which of them exist, `mask`, to `vectors`."""

    def __init__(self, config: HeadConfig, path: Path) -> None:
        self._config = config
        self._network = Network(path)

    def __call__(self, clips: Sequence[Float32]) -> Float32:
        """Return one unit vector for the frame embeddings `[n, dim]` of each clip, in order of time."""
        parts = [self._batch(clips[start : start + BATCH]) for start in range(0, len(clips), BATCH)]
        return np.concatenate(parts)

    def _batch(self, clips: Sequence[Float32]) -> Float32:
        chosen = [clip[uniform_rows(len(clip), self._config.frames)] for clip in clips]
        frames = np.zeros((len(chosen), max(LEAST, *map(len, chosen)), chosen[0].shape[1]), np.float32)
        mask = np.zeros(frames.shape[:2], bool)
        for number, rows in enumerate(chosen):
            frames[number, : len(rows)], mask[number, : len(rows)] = rows, True
        return self._network(frames=frames, mask=mask)["vectors"]
