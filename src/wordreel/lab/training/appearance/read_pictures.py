"""Read captioned files into a `PictureSet`: decode in worker processes, encode each frame, embed captions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from wordreel.errors import TrainingError
from wordreel.lab.models.appearance.config import PictureTextConfig
from wordreel.lab.models.text.minilm import minilm_network
from wordreel.lab.training.appearance.picture_set import (
    AppearanceData,
    PictureSet,
    Uint8,
    encode_picture,
    held_out,
)
from wordreel.lab.training.appearance.recipe import AppearanceRecipe
from wordreel.lab.training.appearance.start import published_weights
from wordreel.lab.training.data.caption_store import sentence_vectors
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.training_data import sentence_tokens
from wordreel.lab.training.video.decode_frames import FrameSpec
from wordreel.lab.training.video.loader import FrameLoader
from wordreel.lab.training.video.video_pairs import VideoData, VideoPairs
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32

BATCH = 32  # files


def prepare_pictures(
    recipe: AppearanceRecipe,
    data: VideoData,
    *,
    device: torch.device | None = None,
    store: WeightStore | None = None,
    on_progress: ProgressCallback | None = None,
) -> AppearanceData:
    """Read the files of `data`; where it has no validation part, the recipe's share is held out."""
    start = published_weights(store)
    device = device or torch.device("cpu")

    def read(videos: VideoPairs) -> PictureSet:
        return read_pictures(videos, recipe.model, recipe.pictures.frames, device, store, on_progress)

    train = read(data.train)
    if data.val is not None:
        return AppearanceData(train, read(data.val), start)
    mask = held_out(train.pairs.ids, recipe.pictures.hold_out)
    if not mask.any():
        return AppearanceData(train, None, start)
    if mask.all():
        raise TrainingError("every item is held out for validation; set a smaller pictures.hold_out")
    return AppearanceData(train.take(~mask), train.take(mask), start)


def read_pictures(
    videos: VideoPairs,
    model: PictureTextConfig,
    frames: int,
    device: torch.device,
    store: WeightStore | None = None,
    on_progress: ProgressCallback | None = None,
) -> PictureSet:
    """Every file as at most `frames` pictures; files that cannot be decoded are left out and counted."""
    encoded: list[list[Uint8]] = [[] for _ in videos.paths]
    for number, pictures in _decode(videos, FrameSpec(model.size, frames), on_progress):
        encoded[number] = [encode_picture(picture) for picture in pictures]
    readable = [number for number, pictures in enumerate(encoded) if pictures]
    if not readable:
        raise TrainingError(f"{videos.pairs.name}: none of {len(encoded):,} files could be decoded")
    pairs = _select(videos.pairs, readable)
    flat = [picture for number in readable for picture in encoded[number]]
    return PictureSet(
        pairs,
        tuple(videos.pairs.name.split(" + ")),
        np.array([len(encoded[number]) for number in readable], np.int64),
        np.array([len(picture) for picture in flat], np.int64),
        np.concatenate(flat),
        embed_captions(pairs, device, store),
    )


def embed_captions(pairs: Pairs, device: torch.device, store: WeightStore | None = None) -> Float32:
    """Unit vectors of all captions by the frozen sentence encoder."""
    network = minilm_network(store).to(device)
    vectors: Float32 = sentence_vectors(network, sentence_tokens(pairs, store), device).cpu().numpy()
    return vectors


def _select(pairs: Pairs, numbers: list[int]) -> Pairs:
    return replace(
        pairs,
        ids=tuple(pairs.ids[number] for number in numbers),
        captions=tuple(pairs.captions[number] for number in numbers),
        source=pairs.source[numbers],
        missing=pairs.missing + len(pairs) - len(numbers),
    )


def _decode(
    videos: VideoPairs, spec: FrameSpec, on_progress: ProgressCallback | None
) -> Iterator[tuple[int, Uint8]]:
    loader = FrameLoader(
        videos.paths, spec, min(BATCH, len(videos)), workers=min(os.cpu_count() or 1, len(videos))
    )
    try:
        numbers = np.arange(len(videos))
        for batch in loader.load(numbers[at : at + BATCH] for at in range(0, len(videos), BATCH)):
            for row, number in enumerate(batch.items.tolist()):
                yield number, batch.pixels[row, : int(batch.counts[row])]
            if on_progress is not None:
                on_progress(Progress("reading pictures", int(batch.items[-1]) + 1, len(videos)))
    finally:
        loader.close()
