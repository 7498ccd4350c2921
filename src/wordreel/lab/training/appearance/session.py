"""A session on pictures: the appearance network against captions, and against its former classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import kl_div, log_softmax

from wordreel.errors import TrainingError
from wordreel.lab.models.appearance.picture_text import PictureText
from wordreel.lab.models.checkpoint import save
from wordreel.lab.training.appearance.augment import as_pixels, augment
from wordreel.lab.training.appearance.embed import features_of, measure_sources
from wordreel.lab.training.appearance.picture_set import AppearanceData
from wordreel.lab.training.appearance.recipe import AppearanceRecipe
from wordreel.lab.training.appearance.start import init_network
from wordreel.lab.training.data.device_memory import device_for
from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.distributed import World
from wordreel.lab.training.losses import build_loss
from wordreel.lab.training.losses.masks import same_video
from wordreel.lab.training.measure import ValidationMetrics
from wordreel.lab.training.moving_average import Averaged
from wordreel.lab.training.optimisers import build_optimiser
from wordreel.lab.training.precision import TrainingPrecision, backward_and_step
from wordreel.lab.training.session import Session
from wordreel.lab.training.step import seed_step, set_lr
from wordreel.types import Int64

BLOCK = 4096  # pictures whose class probabilities are computed at once


class PictureBatch(NamedTuple):
    """Numbers of items, of pictures and of captions, `[b]` each."""

    items: Int64
    pictures: Int64
    captions: Int64


class AppearanceSession(Session[PictureBatch]):
    """Holds all pictures decoded, on the GPU where they fit."""

    module: Averaged[PictureText]

    def __init__(
        self, recipe: AppearanceRecipe, data: AppearanceData, device: torch.device, world: World
    ) -> None:
        if world.size > 1:
            raise TrainingError(
                "the appearance network trains in one process; start it without torchrun or --on"
            )
        self.recipe: AppearanceRecipe = recipe
        self.data, self.device, self.world = data, device, world
        self.has_validation = data.val is not None
        run, size = recipe.run, recipe.model.size
        torch.manual_seed(run.seed)
        trained = PictureText(recipe.model)
        init_network(trained.network, data.start)
        trained.to(device)
        trained.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.precision = TrainingPrecision(run.precision_on(device.type), device.type)
        self.images = _stored(torch.from_numpy(data.train.decode(size)), device)
        self.sentences = torch.from_numpy(data.train.sentences).to(device)
        self.former = self._class_log_probabilities(trained)
        self.val_images = None
        if data.val is not None:
            self.val_images = _stored(torch.from_numpy(data.val.decode(size)), device)
        self.module = Averaged(trained, recipe.fine_tune.average)
        self.module.trained.train()
        self.loss: nn.Module = build_loss(recipe.loss).to(device)
        self.optimiser = build_optimiser(recipe.optimiser, trained, self.loss)
        self.scaler = self.precision.grad_scaler()
        self.sampler = BatchSampler.of(data.train.pairs, recipe.data, run)
        self._network: Any = torch.compile(trained.network) if run.compile else trained.network

    def _class_log_probabilities(self, module: PictureText) -> Tensor | None:
        """`[pictures, classes]` of the network before training, which it must not forget."""
        if not self.recipe.fine_tune.class_weight:
            return None
        network = module.network.eval()
        features = features_of(network, self.images, self.device, self.precision)
        with torch.no_grad():
            parts = [
                log_softmax(network.classes(features[at : at + BLOCK]).float(), dim=1).half()
                for at in range(0, len(features), BLOCK)
            ]
            return torch.cat(parts)

    def steps_of_epoch(self) -> int:
        return self.sampler.steps_of_epoch()

    def batches(self, epoch: int, first: int) -> Iterator[PictureBatch]:
        """Each item by a random one of its pictures."""
        train = self.data.train
        for step, (items, captions) in enumerate(self.sampler.epoch(epoch)):
            if step >= first:
                chance = np.random.default_rng([self.recipe.run.seed, epoch, step, 15_485_863])
                chosen = train.firsts[items] + chance.integers(0, train.counts[items])
                yield PictureBatch(items, chosen, captions)

    def step(self, batch: PictureBatch, number: int, factor: float) -> Tensor:
        seed_step(self.recipe.run.seed, number)
        set_lr(self.optimiser, factor)
        self.optimiser.zero_grad(set_to_none=True)
        loss = self._loss(batch)
        backward_and_step(loss, self.optimiser, self.scaler, self.recipe.optimiser.clip)
        self.module.update(number)
        return loss.detach()

    def _loss(self, batch: PictureBatch) -> Tensor:
        trained = self.module.trained
        chosen = torch.from_numpy(batch.pictures).to(self.images.device)
        pixels = augment(as_pixels(self.images[chosen].to(self.device)), self.recipe.pictures)
        with self.precision.autocast():
            features = self._network(pixels.contiguous(memory_format=torch.channels_last)).float()
            logits = trained.network.classes(features)
        sentences = self.sentences[torch.from_numpy(batch.captions).to(self.device)]
        similarities = trained.embed_sentences(sentences) @ trained.embed_features(features).T
        same = None
        if self.recipe.loss.same_video == "leave out":
            same = same_video(torch.from_numpy(batch.items)).to(self.device)
        if self.recipe.loss.soft_targets:
            loss: Tensor = self.loss(similarities, same, sentences @ sentences.T)
        else:
            loss = self.loss(similarities, same)
        if self.former is None:
            return loss
        former = self.former[torch.from_numpy(batch.pictures).to(self.device)].float()
        forgotten = kl_div(log_softmax(logits.float(), dim=1), former, log_target=True, reduction="batchmean")
        return loss + self.recipe.fine_tune.class_weight * forgotten

    def measure(self) -> ValidationMetrics | None:
        """Figures of the averaged weights."""
        if self.data.val is None or self.val_images is None:
            return None
        average = self.module.average.eval()
        features = features_of(average.network, self.val_images, self.device, self.precision)
        return measure_sources(average, features, self.data.val)

    def data_identity(self) -> list[str]:
        train, val = self.data.train, self.data.val
        return [train.fingerprint, val.fingerprint if val is not None else "", repr(train.pairs.shares)]

    def parts(self) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
        return self.module, self.loss, self.optimiser, self.scaler

    def data_facts(self) -> dict[str, Any]:
        pairs = self.data.train.pairs
        return {
            "data": pairs.name,
            "videos": len(pairs),
            "pictures": len(self.data.train.lengths),
            "captions": int(pairs.counts.sum()),
        }

    @property
    def validation_name(self) -> str:
        return self.data.val.pairs.name if self.data.val is not None else ""

    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        """The averaged weights: the network with its heads."""
        save(folder, self.module.average, name, about)


def _stored(images: Tensor, device: torch.device) -> Tensor:
    place = device_for(images.numel(), device)
    return images.pin_memory() if place != device and device.type == "cuda" else images.to(place)
