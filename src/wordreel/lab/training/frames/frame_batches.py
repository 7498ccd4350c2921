"""Batches of frames that workers decode ahead, against captions.

Decoded frames become a model's input on the device: augmented, normalised, with what is not there hidden.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample

from wordreel.backbones.config import ImageTransform
from wordreel.backbones.layout import TOKENIZER
from wordreel.errors import TrainingError
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.clip.video_text import CaptionBatch, Encoded, FrameBatch, VideoTextModel
from wordreel.lab.training.data.caption_store import CaptionStore
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.distributed import World
from wordreel.lab.training.frames.decode_frames import FrameSpec
from wordreel.lab.training.frames.frame_loader import FrameLoader
from wordreel.lab.training.init_weights import init_video_text
from wordreel.lab.training.logs import LogRow
from wordreel.lab.training.losses import same_video
from wordreel.lab.training.optimisers import TrainingPrecision
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.session import BatchSource, NumberedBatch
from wordreel.lab.training.settings import FrameSettings
from wordreel.types import Float32, Int64
from wordreel.util.atomic import atomic_write
from wordreel.util.machine import cores

MARGIN = 9 / 8  # frames that are cropped at random are decoded this much larger
EVAL_VIDEOS = {"cpu": 16, "cuda": 64}
EVAL_CAPTIONS = 512
EVAL_ROWS = 256  # captions that are compared with all videos at a time


class VideoBatch(NamedTuple):
    """This process's shard: `frames [b, n, h, w, 3]` uint8, `counts [b]` and `captions`, on the device.

    `videos` are the numbers of the whole batch's videos, of all processes.
    """

    frames: Tensor
    counts: Tensor
    captions: CaptionBatch
    videos: Tensor


class GatheredLogits(nn.Module):
    """The logits of all pairs of all processes; one module, so that its gradients are averaged."""

    def __init__(self, model: VideoTextModel, world: World) -> None:
        super().__init__()
        self.model, self._world = model, world

    def forward(self, frames: FrameBatch, captions: CaptionBatch) -> tuple[tuple[float, Tensor], ...]:
        videos = self._world.gather(self.model.encode_videos(frames))
        texts = self._world.gather(self.model.encode_captions(captions))
        return self.model.training_logits(texts, videos)


class FrameBatches(BatchSource):
    """Frames and captions of the training videos; the validation videos are decoded when they are needed."""

    module: VideoTextModel

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        recipe, data, device, world = self.recipe, self.data, self.device, self.world
        model, words = recipe.model, data.train_words
        if not isinstance(model, VideoTextConfig) or not isinstance(words, Packed) or not data.train.paths:
            raise TrainingError(f"the recipe {recipe.name} does not train on this kind of data")
        self.model = model
        self.module = build(model)
        init_video_text(self.module, recipe.start)
        self.module.to(device).train()
        self.network = world.wrap(GatheredLogits(self.module, world), device)
        self.captions = CaptionStore(words, torch.device("cpu"))
        self.augments = recipe.frames.crop < 1 or recipe.frames.flip > 0
        self.loader = frame_loader(data.train, recipe, device, self.augments, world.size)
        self.encoder = VideoEncoder(recipe, device, self.precision)
        self._reset_timer()

    def load(self, batches: Iterator[NumberedBatch]) -> Iterator[VideoBatch]:
        sent: list[NumberedBatch] = []

        def files() -> Iterator[Int64]:
            for batch in batches:
                sent.append(batch)
                yield self._shard(batch[0]).numpy()

        loaded = self.loader.load(files())
        while True:
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # from here on the device waits
            began = time.perf_counter()
            pixels = next(loaded, None)
            if pixels is None:
                return
            self._waited += time.perf_counter() - began
            videos, captions = sent.pop(0)
            self._clips += len(videos)
            frames, counts = (x.to(self.device, non_blocking=True) for x in pixels)
            whole = self.world.divisible(torch.from_numpy(videos))
            yield VideoBatch(frames, counts, self._captions(self._shard(captions)), whole)

    def _shard(self, numbers: Int64) -> Tensor:
        return self.world.shard(self.world.divisible(torch.from_numpy(numbers)))

    def _captions(self, numbers: Tensor) -> CaptionBatch:
        return CaptionBatch(*(x.to(self.device, non_blocking=True) for x in self.captions.batch(numbers)))

    def loss(self, batch: VideoBatch) -> Tensor:
        frames = normalise(batch.frames, batch.counts, self.model.backbone.transform)
        if self.augments:
            frames = augment(frames, self.recipe.frames, self.model.backbone.vision.size)
        with self.precision.autocast():
            parts = self.network(frames, batch.captions)
        leave_out = self.recipe.loss.same_video == "leave out"
        same = same_video(batch.videos).to(self.device) if leave_out else None
        losses = [weight * self.loss_function(logits.float(), same) for weight, logits in parts]
        return torch.stack(losses).sum()

    def after_step(self) -> None:
        self.module.clip.clamp_logit_scale()

    def _reset_timer(self) -> None:
        self._began, self._waited, self._clips = time.perf_counter(), 0.0, 0

    def epoch_figures(self) -> LogRow:
        """Return clips per second, the share of time that the device waited for data, and bad files."""
        seconds = max(time.perf_counter() - self._began, 1e-9)
        figures: LogRow = {
            "clips_per_second": round(self._clips / seconds, 2),
            "waiting_share": round(self._waited / seconds, 4),
        }
        if self.loader.failed:
            figures["unreadable"] = len(self.loader.failed)
        self._reset_timer()
        return figures

    def similarities(self) -> Float32:
        val, words = self.data.val, self.data.val_words
        assert val is not None and words is not None  # noqa: S101, PT018 - the session has checked
        captions = self.encoder.captions(self.module, words)
        found = self.encoder.logits(self.module, captions, self.encoder.videos(self.module, val))
        self._reset_timer()  # validation is no time of an epoch
        return found

    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        save(folder, self.module, name, about)
        if self.data.tokenizer is not None:
            atomic_write(folder / TOKENIZER, self.data.tokenizer.read_bytes())

    def close(self) -> None:
        self.loader.close()
        self.encoder.close()


class VideoEncoder:
    """Embeds videos and captions with a model; decoded videos stay within the recipe's cache."""

    def __init__(self, recipe: Recipe, device: torch.device, precision: TrainingPrecision) -> None:
        self._recipe, self._device, self._precision = recipe, device, precision
        self._loaders: dict[tuple[Path, ...], FrameLoader] = {}

    def close(self) -> None:
        """End the workers."""
        for loader in self._loaders.values():
            loader.close()

    @torch.inference_mode()
    def videos(self, module: VideoTextModel, videos: Pairs) -> Encoded:
        """Return what the module encodes of every video, in float32."""
        if videos.paths not in self._loaders:
            self._loaders[videos.paths] = frame_loader(videos, self._recipe, self._device)
        loader, size = self._loaders[videos.paths], EVAL_VIDEOS[self._device.type]
        parts: list[Encoded] = []
        for frames, counts in loader.load(np.split(np.arange(len(videos)), range(size, len(videos), size))):
            missing = int(loader.longest.max()) - frames.shape[1]  # in a batch of pictures among videos
            padded = nn.functional.pad(frames, (0, 0, 0, 0, 0, 0, 0, missing)).to(self._device)
            batch = normalise(padded, counts.to(self._device), module.config.backbone.transform)
            with self._precision.autocast():
                parts.append(module.encode_videos(batch))
        return _joined(parts)

    @torch.inference_mode()
    def captions(self, module: VideoTextModel, words: Packed) -> Encoded:
        """Return what the module encodes of every caption, in float32."""
        store, parts = CaptionStore(words, self._device), []
        for numbers in torch.split(torch.arange(len(words)), EVAL_CAPTIONS):
            with self._precision.autocast():
                parts.append(module.encode_captions(CaptionBatch(*store.batch(numbers, words.longest))))
        return _joined(parts)

    @torch.inference_mode()
    def logits(self, module: VideoTextModel, captions: Encoded, videos: Encoded) -> Float32:
        """Return `[captions, videos]` on the host."""
        blocks = zip(*(torch.split(part, EVAL_ROWS) for part in captions), strict=True)
        return np.concatenate([module.logits(block, videos).float().cpu().numpy() for block in blocks])


def frame_loader(
    videos: Pairs, recipe: Recipe, device: torch.device, augmented: bool = False, processes: int = 1
) -> FrameLoader:
    """Return a loader of the frames that a recipe reads; `processes` share the machine's cores and memory."""
    assert isinstance(recipe.model, VideoTextConfig)  # noqa: S101 - the data is of videos
    settings, model = recipe.frames, recipe.model
    size = model.backbone.vision.size
    spec = FrameSpec(
        round(size * MARGIN) if augmented else size, model.max_frames, model.frame_rate, settings.position
    )
    return FrameLoader(
        videos.paths,
        spec,
        workers=settings.workers or max(1, cores() // processes),
        ahead=settings.ahead,
        cache_bytes=int(settings.cache_gib * 2**30 / processes),
        pinned=device.type == "cuda",
    )


def _joined(parts: list[Encoded]) -> Encoded:
    columns = (torch.cat(column) for column in zip(*parts, strict=True))
    return tuple(column.float() if column.is_floating_point() else column for column in columns)


ASPECT = math.log(4 / 3)  # crops are at most this much wider or higher


def normalise(frames: Tensor, counts: Tensor, transform: ImageTransform) -> FrameBatch:
    """Normalise frames as the towers read them.

    `frames [b, n, h, w, 3]` are uint8, of which the first `counts [b]` are real.

    Frames that are not there are zeros, as published. A video of no frame is one black one.
    """
    device = frames.device
    mean, std = (torch.tensor(v, device=device)[:, None, None] for v in (transform.mean, transform.std))
    places = torch.arange(frames.shape[1], device=device)
    mask = places < counts.clamp(min=1)[:, None]
    readable = places < counts[:, None]
    pixels = (frames.permute(0, 1, 4, 2, 3).float() / 255 - mean) / std
    return FrameBatch(pixels * readable[:, :, None, None, None], mask)


def augment(frames: FrameBatch, settings: FrameSettings, size: int) -> FrameBatch:
    """Return a random part of each video, the same in all its frames, at `size` pixels.

    It is perhaps mirrored.
    """
    b, n = frames.pixels.shape[:2]
    device = frames.pixels.device
    chance = torch.rand(5, b, device=device)
    area = settings.crop + (1 - settings.crop) * chance[0]
    aspect = ((2 * chance[1] - 1) * ASPECT).exp().sqrt()
    width, height = ((area.sqrt() * a).clamp(max=1.0) for a in (aspect, 1 / aspect))
    left, top = (1 - width) * (2 * chance[2] - 1), (1 - height) * (2 * chance[3] - 1)
    mirror = torch.where(chance[4] < settings.flip, -1.0, 1.0)
    zeros = torch.zeros_like(width)
    rows = [torch.stack([width * mirror, zeros, left], 1), torch.stack([zeros, height, top], 1)]
    theta = torch.stack(rows, 1).repeat_interleave(n, 0)
    with torch.autocast(device.type, enabled=False):
        grid = affine_grid(theta, [b * n, 3, size, size], align_corners=False)
        pixels = grid_sample(frames.pixels.flatten(0, 1), grid, padding_mode="border", align_corners=False)
    return FrameBatch(pixels.view(b, n, 3, size, size), frames.mask)
