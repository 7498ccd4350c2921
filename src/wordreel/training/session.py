"""Everything a run works with, built from a recipe and its material."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordreel.models.build import build
from wordreel.models.trained import save
from wordreel.training.data.order import Order
from wordreel.training.data.shelf import Shelf
from wordreel.training.data.texts import Texts, frozen_states, is_frozen
from wordreel.training.data.transcripts import Stretches, Transcripts
from wordreel.training.distributed import World
from wordreel.training.losses import build_loss
from wordreel.training.losses.distil import Distil
from wordreel.training.material import Material
from wordreel.training.measure import Measured, measure, similarities
from wordreel.training.optimisers import build_optimiser
from wordreel.training.precision import DTYPES, Precision
from wordreel.training.recipe import Recipe
from wordreel.training.start import begin, copy_tokenizer
from wordreel.training.step import Stepper
from wordreel.types import Int64


class Session:
    def __init__(self, recipe: Recipe, material: Material, device: torch.device, world: World) -> None:
        self.recipe, self.material, self.device, self.world = recipe, material, device, world
        run = recipe.run
        torch.manual_seed(run.seed)
        self.module = build(recipe.model)
        begin(self.module, recipe.start)
        self.module.to(device).train()
        self.loss: nn.Module = build_loss(recipe.loss).to(device)
        self.precision = Precision(run.precision, device.type)
        dtype, wide = DTYPES[recipe.data.precision], self.precision.name == "float32"
        text = recipe.model.text
        val_words = material.val_words
        if is_frozen(text):
            val_words = val_words and frozen_states(self.module, val_words, text, device)
        self.shelf = Shelf(material.train, recipe.model, device, dtype, run.compile, run.expert_dropout, wide)
        self.texts = self._texts()
        self.val_shelf, self.val_texts = None, None
        if material.val is not None and val_words is not None and world.is_main_process:
            self.val_shelf = Shelf(material.val, recipe.model, device, dtype, wide=wide)
            self.val_texts = Texts(val_words, device, dtype, wide=wide)
        self.order = Order.of(material.train, recipe.data, run, 2 * world.size)
        captured = run.compile and device.type == "cuda" and world.size == 1 and run.precision != "float16"
        self.optimiser = build_optimiser(recipe.optimiser, self.module, self.loss, captured)
        self.stepper = self._stepper()

    def _texts(self) -> Texts | Stretches:
        data, text, words = self.recipe.data, self.recipe.model.text, self.material.train_words
        if isinstance(words, Transcripts):
            return Stretches(words, self.device, data.stretch, text.max_tokens or data.stretch + 2)
        if is_frozen(text):
            words = frozen_states(self.module, words, text, self.device)
        length = min(words.longest, text.max_tokens or words.longest) if self.recipe.run.compile else 0
        middles = self.material.train.spans.mean(axis=1) if data.window else None
        wide = self.precision.name == "float32"
        return Texts(words, self.device, DTYPES[data.precision], length, middles, wide)

    def _stepper(self) -> Stepper:
        recipe, teachers = self.recipe, self.material.teachers
        return Stepper(
            self.module,
            self.loss,
            self.optimiser,
            self.shelf,
            self.texts,
            self.device,
            self.precision,
            seed=recipe.run.seed,
            clip=recipe.optimiser.clip,
            leave_out_same=recipe.loss.same_video == "leave out",
            compile=recipe.run.compile,
            world=self.world,
            teachers=None if teachers is None else teachers.to(self.device),
            distil=None if teachers is None else Distil(recipe.teach.kind, recipe.teach.delta),
            distil_weight=recipe.teach.weight,
            window=recipe.data.window,
            size=self.order.largest() // self.world.size * self.world.size,
        )

    def step(self, videos: Int64, captions: Int64, number: int, scale: float) -> Tensor:
        """One step on these pairs; its loss."""
        return self.stepper(self._numbers(videos), self._numbers(captions), number, scale)

    def _numbers(self, values: Int64) -> Tensor:
        numbers = torch.from_numpy(values)
        if self.shelf.place.type == "cuda":
            return numbers.pin_memory().to(self.device, non_blocking=True)
        return numbers

    def measure(self) -> Measured | None:
        """The figures of the validation set; None where there is none."""
        if self.val_shelf is None or self.val_texts is None or self.material.val is None:
            return None
        val = self.material.val
        found = similarities(self.module, self.val_shelf, self.val_texts, len(val), self.precision)
        return measure(found, val.counts)

    @cached_property
    def _data(self) -> list[str]:
        train, val = self.material.train, self.material.val
        shown = hashlib.sha256(repr(train.shares).encode() + train.spans.tobytes()).hexdigest()[:16]
        return [train.fingerprint, val.fingerprint if val is not None else "", shown]

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to go on."""
        recipe = self.recipe.to_json()
        recipe["run"] = {k: v for k, v in recipe["run"].items() if k != "save_minutes"}
        return {"recipe": _plain(recipe), "data": self._data}

    def parts(self) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer, torch.amp.GradScaler]:
        """What a state holds."""
        return self.module, self.loss, self.optimiser, self.stepper.scaler

    def sound(self) -> bool:
        """Whether every weight is a finite number. A loss may not tell: what is none counts as no match."""
        with torch.no_grad():
            return bool(torch.stack([p.isfinite().all() for p in self.module.parameters()]).all())

    def copied_state(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def write(self, folder: Path, name: str, about: dict[str, Any], state: dict[str, Tensor] | None) -> None:
        """A model folder with these weights, or with the present ones."""
        now = None
        if state is not None:
            now = self.copied_state()
            self.module.load_state_dict(state)
        save(folder, self.module, name, about)
        copy_tokenizer(self.recipe.model.text, self.material.tokenizer, folder)
        if now is not None:
            self.module.load_state_dict(now)


def _plain(value: Any) -> Any:
    """As JSON would give it back: lists for tuples."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    return value
