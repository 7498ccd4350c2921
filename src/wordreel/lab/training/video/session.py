"""A session on raw video: frames decoded ahead by workers, against captions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from wordreel.backbones.layout import TOKENIZER
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.clip.video_text import CaptionBatch, FrameBatch, VideoTextModel
from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.distributed import World
from wordreel.lab.training.logs import LogRow
from wordreel.lab.training.losses import build_loss
from wordreel.lab.training.losses.masks import same_video
from wordreel.lab.training.measure import ValidationMetrics, measure
from wordreel.lab.training.optimisers import build_optimiser
from wordreel.lab.training.precision import TrainingPrecision, backward_and_step
from wordreel.lab.training.session import Session
from wordreel.lab.training.step import seed_step, set_lr
from wordreel.lab.training.video.captions import CaptionIds, tokenizer_content
from wordreel.lab.training.video.device_loader import DeviceLoader
from wordreel.lab.training.video.encode import VideoEncoder
from wordreel.lab.training.video.pixels import augment, normalise
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.lab.training.video.start import init_video_text
from wordreel.lab.training.video.video_pairs import VideoData, VideoPairs
from wordreel.lab.training.video.wait_timer import WaitTimer
from wordreel.types import Int64
from wordreel.util.atomic import atomic_write


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
        videos = self._world.gather_tensors(self.model.encode_videos(frames))
        texts = self._world.gather_tensors(self.model.encode_captions(captions))
        return self.model.training_logits(texts, videos)


class VideoSession(Session[VideoBatch]):
    module: VideoTextModel

    def __init__(self, recipe: VideoRecipe, data: VideoData, device: torch.device, world: World) -> None:
        self.recipe: VideoRecipe = recipe
        self.data, self.device, self.world = data, device, world
        self.has_validation = data.val is not None
        run, model = recipe.run, recipe.model
        torch.manual_seed(run.seed)
        self.module = build(model)
        init_video_text(self.module, recipe.start)
        self.module.to(device).train()
        self.loss: nn.Module = build_loss(recipe.loss).to(device)
        self.precision = TrainingPrecision(run.precision_on(device.type), device.type)
        self.scaler = self.precision.grad_scaler()
        self.optimiser = build_optimiser(recipe.optimiser, self.module, self.loss)
        self.network = world.wrap(GatheredLogits(self.module, world), device)
        self.sampler = BatchSampler.of(data.train.pairs, recipe.data, run, 2 * world.size)
        self.tokenizer = tokenizer_content(recipe, data.tokenizer)
        self.captions = CaptionIds.of(data.train.pairs, model, self.tokenizer)
        self.augments = recipe.frames.crop < 1 or recipe.frames.flip > 0
        self.size = model.backbone.vision.size
        self.loader = DeviceLoader(
            data.train.paths, recipe, self.sampler.largest() // world.size, device, self.augments, world.size
        )
        self.timer = WaitTimer(device)
        self._stream: Iterator[VideoBatch] | None = None
        self._at = (-1, -1)  # the epoch and step that the stream of batches is at

    @cached_property
    def encoder(self) -> VideoEncoder:
        """Embeds the validation set; decodes it the first time."""
        return VideoEncoder(self.recipe, self.device, self.precision, self.tokenizer)

    def steps_of_epoch(self) -> int:
        return self.sampler.steps_of_epoch()

    def batches(self, epoch: int, first: int) -> Iterator[VideoBatch]:
        """Batches are loaded across the ends of epochs, so that no epoch begins with waiting."""
        if self._stream is None or self._at != (epoch, first):
            self._stream = self._load(epoch, first)
        self.timer.begin()
        for _ in range(self.steps_of_epoch() - first):
            yield next(self._stream)
        self._at = (epoch + 1, 0)

    def _load(self, epoch: int, first: int) -> Iterator[VideoBatch]:
        def numbers() -> Iterator[tuple[Int64, Int64]]:
            for later in range(epoch, self.recipe.run.epochs):
                yield from self.sampler.epoch(later)[first if later == epoch else 0 :]

        sent: list[tuple[Tensor, Int64]] = []

        def own() -> Iterator[Int64]:
            for videos, captions in numbers():
                whole = self.world.divisible(torch.from_numpy(videos))
                shard = self.world.shard(self.world.divisible(torch.from_numpy(captions)))
                sent.append((whole, shard.numpy()))
                yield self.world.shard(whole).numpy()

        for frames, counts in self.loader.load(own()):
            whole, captions = sent.pop(0)
            yield VideoBatch(frames, counts, self.captions.batch(captions, self.device), whole)

    def step(self, batch: VideoBatch, number: int, factor: float) -> Tensor:
        self.timer.start(len(batch.videos))
        seed_step(self.recipe.run.seed, number, self.world.rank)
        set_lr(self.optimiser, factor)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self._loss(batch)
        backward_and_step(loss, self.optimiser, self.scaler, self.recipe.optimiser.clip)
        self.module.clip.clamp_logit_scale()
        self.timer.end()
        return loss.detach()

    def _loss(self, batch: VideoBatch) -> Tensor:
        frames = normalise(batch.frames, batch.counts, self.recipe.model.backbone.transform)
        if self.augments:
            frames = augment(frames, self.recipe.frames, self.size)
        with self.precision.autocast():
            parts = self.network(frames, batch.captions)
        same = None
        if self.recipe.loss.same_video == "leave out":
            same = same_video(batch.videos).to(self.device)
        losses = [weight * self.loss(logits.float(), same) for weight, logits in parts]
        return torch.stack(losses).sum()

    def epoch_figures(self) -> LogRow:
        """Clips per second, the share of time that the device waited for data, and unreadable files."""
        figures: LogRow = dict(self.timer.figures())
        if self.loader.failed:
            figures["unreadable"] = len(self.loader.failed)
        return figures

    def measure(self) -> ValidationMetrics | None:
        val: VideoPairs | None = self.data.val
        if val is None:
            return None
        return measure(self.encoder.similarities(self.module, val), val.pairs.counts)

    def data_identity(self) -> list[str]:
        return self._identity

    @cached_property
    def _identity(self) -> list[str]:
        train, val = self.data.train, self.data.val
        return [train.fingerprint, val.fingerprint if val is not None else "", repr(train.pairs.shares)]

    def parts(self) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
        return self.module, self.loss, self.optimiser, self.scaler

    def data_facts(self) -> dict[str, Any]:
        pairs = self.data.train.pairs
        return {"data": pairs.name, "videos": len(pairs), "captions": int(pairs.counts.sum())}

    @property
    def validation_name(self) -> str:
        return self.data.val.pairs.name if self.data.val is not None else ""

    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        save(folder, self.module, name, about)
        atomic_write(folder / TOKENIZER, self.tokenizer.encode())

    def close(self) -> None:
        self._stream = None
        self.loader.close()
        if "encoder" in self.__dict__:
            self.encoder.close()
