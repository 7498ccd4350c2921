"""The state of a run, to resume as if it had never stopped: one safetensors file with its facts inside.

Random numbers need no state: they are functions of the seed and the step.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.errors import NextStep, TrainingError
from wordreel.util.atomic import atomic_write, make_dir

FILE, KEY, CHECK, FORMAT = "state.safetensors", "wordreel", "check", 2
START_AGAIN = NextStep("start again, or name another folder", "train … --overwrite")


@dataclass(frozen=True)
class SavedState:
    """The facts of a run, and the tensors of its module and optimiser."""

    folder: Path
    facts: dict[str, Any]
    tensors: dict[str, Tensor]

    def load_into(
        self, module: nn.Module, optimiser: torch.optim.Optimizer, scaler: torch.amp.GradScaler
    ) -> None:
        """Put the state into the module, the optimiser and the scaler."""
        try:
            module.load_state_dict(self._under("module."))
        except RuntimeError as error:
            raise TrainingError(f"the state in {self.folder} is of another model: {error}") from None
        groups = optimiser.state_dict()["param_groups"]
        numbers = [number for group in groups for number in group["params"]]
        saved = {number: self._under(f"optimiser.{number}.") for number in numbers}
        state = {number: values for number, values in saved.items() if values}
        optimiser.load_state_dict({"state": state, "param_groups": groups})
        if scaler.is_enabled():
            scaler.load_state_dict(self.facts["scaler"])

    def _under(self, prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): tensor for k, tensor in self.tensors.items() if k.startswith(prefix)}


def save_state(
    folder: Path,
    module: nn.Module,
    optimiser: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    facts: dict[str, Any],
) -> None:
    """Replace the state in a folder as a whole: a kill leaves the old one or the new one."""
    from safetensors.torch import save

    make_dir(folder)
    tensors = {f"module.{name}": value for name, value in module.state_dict().items()}
    for number, values in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{name}": value for name, value in values.items()}
    on_cpu = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps({**facts, "format": FORMAT, "scaler": scaler.state_dict()})
    metadata = {KEY: text, CHECK: str(checksum(text, on_cpu))}
    atomic_write(folder / FILE, save(on_cpu, metadata=metadata))


def read_state(folder: Path) -> SavedState | None:
    """Return a run's state; None where there is none.

    Raises:
        TrainingError: The state is damaged, or of another version.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), "pt") as file:
            metadata = file.metadata() or {}
            facts = json.loads(metadata[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(f"{path} cannot be read ({error})", START_AGAIN) from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise TrainingError(f"{path} is of another version", START_AGAIN)
    if metadata.get(CHECK) != str(checksum(metadata[KEY], tensors)):
        raise TrainingError(f"{path} is damaged: its checksum does not match", START_AGAIN)
    return SavedState(folder, facts, tensors)


def checksum(text: str, tensors: Mapping[str, Tensor]) -> int:
    """Return the CRC-32 of a text and of every tensor: it detects disk errors, not tampering."""
    crc = zlib.crc32(text.encode())
    for name in sorted(tensors):
        crc = zlib.crc32(f"{name}\x1f{tensors[name].dtype}\x1f{tuple(tensors[name].shape)}".encode(), crc)
        crc = zlib.crc32(tensors[name].reshape(-1).view(torch.uint8).numpy().data, crc)
    return crc


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """Return the values that differ, by name, in plain nested values.

    >>> differences({"run": {"epochs": 3, "batch": 8}}, {"run": {"epochs": 5, "batch": 8}})
    ['run.epochs was 3 and is 5']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        names = dict.fromkeys([*old, *new])
        dotted = [(name, f"{where}.{name}" if where else str(name)) for name in names]
        return [line for name, path in dotted for line in differences(old.get(name), new.get(name), path)]
    if old == new:
        return []
    short = all(isinstance(value, str | int | float | None) for value in (old, new))
    return [f"{where} was {old!r} and is {new!r}" if short else f"{where} differs"]
