"""What a run drives: one module with its data, its optimiser and its loss, whatever the data is made of."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.distributed import World
from wordreel.lab.training.logs import LogRow
from wordreel.lab.training.losses import Loss, build_loss
from wordreel.lab.training.measure import ValidationMetrics, measure
from wordreel.lab.training.optimisers import TrainingPrecision, build_optimiser
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.training_data import TrainingData
from wordreel.types import Float32, Int64

NumberedBatch = tuple[Int64, Int64]
"""Numbers of videos `[b]` and of captions `[b]`."""


class BatchSource(ABC):
    """The kind of data that a session trains on: how the module is built, batches loaded and compared."""

    module: nn.Module

    def __init__(self, recipe: Recipe, data: TrainingData, device: torch.device, world: World) -> None:
        self.recipe, self.data, self.device, self.world = recipe, data, device, world
        self.precision = TrainingPrecision(recipe.run.precision_on(device.type), device.type)
        self.loss_function: Loss = build_loss(recipe.loss)
        self.sampler = BatchSampler(data.train, recipe.data, recipe.run, 2 * world.size)

    @abstractmethod
    def load(self, batches: Iterator[NumberedBatch]) -> Iterator[Any]:
        """Yield what `loss` takes of each batch, in order."""

    @abstractmethod
    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, of all processes."""

    @abstractmethod
    def similarities(self) -> Float32:
        """Return `[captions, videos]` of the validation set."""

    @abstractmethod
    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        """Write a model folder with the present weights."""

    def after_step(self) -> None:  # noqa: B027 - most have nothing to do
        """Mend weights after each step."""

    def epoch_figures(self) -> LogRow:
        """Return figures of the epoch that just ended, beyond its loss and speed."""
        return {}

    def close(self) -> None:  # noqa: B027
        """End what was started."""


class Session:
    """One training of one module."""

    def __init__(self, recipe: Recipe, data: TrainingData, device: torch.device, world: World) -> None:
        self.recipe, self.data, self.device, self.world = recipe, data, device, world
        torch.manual_seed(recipe.run.seed)
        self.source = _batch_source(recipe)(recipe, data, device, world)
        self.module, self.sampler = self.source.module, self.source.sampler
        self.optimiser = build_optimiser(recipe.optimiser, self.module)
        self.scaler = self.source.precision.grad_scaler()
        self._stream: Iterator[Any] = iter(())
        self._next = (-1, -1)  # the epoch and step that the stream of batches is at

    def steps_of_epoch(self) -> int:
        """Return how many steps an epoch has."""
        return self.sampler.steps_of_epoch()

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Yield the batches of epoch 0, 1, … from step `first` of it.

        They are loaded across the ends of epochs, so that no epoch begins with waiting.
        """
        if self._next != (epoch, first):
            self._stream = self.source.load(self._numbers(epoch, first))
        for _ in range(self.steps_of_epoch() - first):
            yield next(self._stream)
        self._next = (epoch + 1, 0)

    def _numbers(self, epoch: int, first: int) -> Iterator[NumberedBatch]:
        for later in range(epoch, self.recipe.run.epochs):
            yield from self.sampler.epoch(later)[first if later == epoch else 0 :]

    def step(self, batch: Any, number: int, factor: float) -> Tensor:
        """Take step `number` (0, 1, …) at `factor` times the learning rate; return its loss, detached."""
        seed_step(self.recipe.run.seed, number, self.world.rank)
        for group in self.optimiser.param_groups:
            group["lr"] = group.setdefault("base_lr", group["lr"]) * factor
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.source.loss(batch)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        if clip := self.recipe.optimiser.clip:
            self.scaler.unscale_(self.optimiser)
            trained = [p for group in self.optimiser.param_groups for p in group["params"]]
            nn.utils.clip_grad_norm_(trained, clip)
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.source.after_step()
        return loss.detach().clone()

    @property
    def has_validation(self) -> bool:
        """Return whether there is anything to measure."""
        return self.data.val is not None

    def measure(self) -> ValidationMetrics | None:
        """Return the figures of the validation set; None where there is none."""
        if self.data.val is None:
            return None
        self.module.eval()
        try:
            return measure(self.source.similarities(), self.data.val.counts)
        finally:
            self.module.train()

    @cached_property
    def _data_identity(self) -> list[str]:
        train, val = self.data.train, self.data.val
        sampling = hashlib.sha256(repr(train.shares).encode() + train.spans.tobytes()).hexdigest()[:16]
        return [train.fingerprint, val.fingerprint if val is not None else "", sampling]

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a run to resume."""
        recipe = self.recipe.to_json()
        recipe["run"] = {k: v for k, v in recipe["run"].items() if k != "save_minutes"}
        return {"recipe": _plain(recipe), "data": self._data_identity}

    def data_facts(self) -> dict[str, Any]:
        """Return what is stored with a model about its recipe and its data."""
        train = self.data.train
        counts = {"videos": len(train), "captions": int(train.counts.sum())}
        return {"recipe": self.recipe.to_json(), "data": train.name, **counts}

    def validation_facts(self) -> dict[str, Any]:
        """Return what is stored with a model about the data of its validation."""
        return {} if self.data.val is None else {"data": self.data.val.name}

    def weights_finite(self) -> bool:
        """Return whether every weight is finite. The loss may hide it: a NaN similarity is no match."""
        with torch.no_grad():
            return bool(torch.stack([p.isfinite().all() for p in self.module.parameters()]).all())

    def copied_state(self) -> dict[str, Tensor]:
        """Return a copy of the weights."""
        return {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def write(
        self, folder: Path, name: str, about: dict[str, Any], weights: dict[str, Tensor] | None = None
    ) -> None:
        """Write a model folder with these weights, or with the present ones."""
        present = self.copied_state() if weights is not None else None
        if weights is not None:
            self.module.load_state_dict(weights)
        self.source.save(folder, name, about)
        if present is not None:
            self.module.load_state_dict(present)

    def close(self) -> None:
        """End what the session started."""
        self._stream = iter(())
        self.source.close()


def seed_step(seed: int, number: int, rank: int = 0) -> None:
    """Set torch's random numbers for one step: the same for the same seed, step and process."""
    state = np.random.SeedSequence([seed, number, rank, 104729]).generate_state(1, np.uint64)
    torch.manual_seed(int(state[0]) >> 1)


def _batch_source(recipe: Recipe) -> type[BatchSource]:
    if recipe.reads_frames:
        # Decodes, which features need not:
        from wordreel.lab.training.frames.frame_batches import FrameBatches

        return FrameBatches
    from wordreel.lab.training.feature_batches import FeatureBatches

    return FeatureBatches


def _plain(value: Any) -> Any:
    """As JSON would give it back: lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    return value
