"""What a run drives: one module with its data, its optimiser and its loss, whatever the data is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.lab.training.distributed import World
from wordreel.lab.training.logs import LogRow
from wordreel.lab.training.measure import ValidationMetrics
from wordreel.lab.training.recipe import BaseRecipe

Batch = TypeVar("Batch")


class Session(ABC, Generic[Batch]):
    """One training of one module. `has_validation` says whether `measure` has anything to measure."""

    recipe: BaseRecipe
    device: torch.device
    world: World
    module: nn.Module
    has_validation: bool

    @abstractmethod
    def steps_of_epoch(self) -> int: ...

    @abstractmethod
    def batches(self, epoch: int, first: int) -> Iterator[Batch]:
        """The batches of epoch 0, 1, … from step `first` of it."""

    @abstractmethod
    def step(self, batch: Batch, number: int, factor: float) -> Tensor:
        """Step `number` of the run at `factor` times the learning rate; its loss, detached."""

    @abstractmethod
    def measure(self) -> ValidationMetrics | None:
        """The figures of the validation set; None where there is none."""

    @abstractmethod
    def data_identity(self) -> list[str]:
        """Changes with the data."""

    @abstractmethod
    def parts(self) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
        """What a state holds: module, loss, optimiser and scaler."""

    @abstractmethod
    def data_facts(self) -> dict[str, Any]:
        """What is stored with a model about its data."""

    @property
    @abstractmethod
    def validation_name(self) -> str: ...

    @abstractmethod
    def save(self, folder: Path, name: str, about: dict[str, Any]) -> None:
        """Write a model folder with the present weights."""

    def epoch_figures(self) -> LogRow:
        """Figures of the epoch that just ended, beyond its loss and speed; the next call starts anew."""
        return {}

    def close(self) -> None:
        """End what the session started."""

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to resume."""
        recipe = self.recipe.to_json()
        recipe["run"] = {k: v for k, v in recipe["run"].items() if k != "save_minutes"}
        return {"recipe": _plain(recipe), "data": self.data_identity()}

    def weights_finite(self) -> bool:
        """Whether every weight is finite. The loss may hide it: a NaN similarity counts as no match."""
        with torch.no_grad():
            return bool(torch.stack([p.isfinite().all() for p in self.module.parameters()]).all())

    def copied_state(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def write(self, folder: Path, name: str, about: dict[str, Any], state: dict[str, Tensor] | None) -> None:
        """A model folder with these weights, or with the present ones."""
        if state is None:
            self.save(folder, name, about)
            return
        now = self.copied_state()
        self.module.load_state_dict(state)
        self.save(folder, name, about)
        self.module.load_state_dict(now)


def _plain(value: Any) -> Any:
    """As JSON would give it back: lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    return value
