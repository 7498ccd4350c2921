"""Small video-text models and batches for tests."""

from __future__ import annotations

import torch
from tests.lab.models.clip.slow_clip import Array
from tests.lab.models.clip.tiny_config import END

from wordreel.lab.models.clip.video_text import CaptionBatch, FrameBatch


def frames(seed: int = 0, lengths: tuple[int, ...] = (3, 5, 2)) -> FrameBatch:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randn(len(lengths), max(lengths), 3, 8, 8, generator=generator)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return FrameBatch(pixels, mask)


def captions(seed: int = 0, lengths: tuple[int, ...] = (4, 7)) -> CaptionBatch:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(1, END, (length,), generator=generator)
        ids[row, length - 1] = END
    return CaptionBatch(ids, ids > 0)


def arrays(module: torch.nn.Module) -> dict[str, Array]:
    return {key: value.double().numpy() for key, value in module.state_dict().items()}


def shake(module: torch.nn.Module, seed: int = 1) -> None:
    """Random values in every parameter, norms and biases too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


def real_frames(batch: FrameBatch) -> list[Array]:
    """Pixels of the real frames, video by video."""
    return [video[real].double().numpy() for video, real in zip(batch.pixels, batch.mask, strict=True)]
