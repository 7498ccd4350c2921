"""The state of a run, to resume as if it had never stopped: one safetensors file with its facts inside.

Random numbers need no state: they are functions of the seed and the step.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.training.optimisers.radam import RAdam
from wordreel.util.atomic import atomic_write, make_dir

FILE, KEY, FORMAT = "state.safetensors", "wordreel", 1
START_AGAIN = NextStep("start again, or name another folder", "train … --overwrite")
FACTS: dict[str, Any] = {
    "recipe": dict, "data": list, "step": int, "total": (int, float), "counted": int, "history": list,
    "seconds": (int, float), "best_epoch": int, "best_score": (int, float), "optimiser_steps": int,
    "scaler": dict,
}  # fmt: skip


def save_state(
    folder: Path,
    module: nn.Module,
    loss: nn.Module,
    optimiser: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    facts: dict[str, Any],
) -> None:
    """Replace the state in a folder as a whole: a kill leaves the old one or the new one."""
    from safetensors.torch import save

    make_dir(folder)
    tensors = {f"module.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"loss.{name}": value for name, value in loss.state_dict().items()}
    for number, p in enumerate(_parameters(optimiser)):
        for name, value in optimiser.state.get(p, {}).items():
            tensors[f"optimiser.{number}.{name}"] = torch.as_tensor(value)
    on_cpu = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    facts = {**facts, "check": checksum(on_cpu)}
    steps = optimiser.steps if isinstance(optimiser, RAdam) else 0
    metadata = {**facts, "format": FORMAT, "optimiser_steps": steps, "scaler": scaler.state_dict()}
    atomic_write(folder / FILE, save(on_cpu, metadata={KEY: json.dumps(metadata)}))


def read_facts(folder: Path) -> dict[str, Any] | None:
    """The facts of a run's state; None where there is no state."""
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), "pt") as file:
            facts = json.loads((file.metadata() or {})[KEY])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(f"{path} cannot be read ({error})", START_AGAIN) from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise TrainingError(f"{path} is of another version", START_AGAIN)
    wrong = [key for key, kind in FACTS.items() if not isinstance(facts.get(key), kind)]
    if wrong or "best_figures" not in facts:
        raise TrainingError(f"{path} does not say its {', '.join(wrong) or 'best_figures'}", START_AGAIN)
    return facts


def checksum(tensors: Mapping[str, Tensor]) -> int:
    """CRC-32 of every tensor with its name and shape: it detects disk errors, not tampering."""
    crc = 0
    for name in sorted(tensors):
        crc = zlib.crc32(f"{name}\x1f{tensors[name].dtype}\x1f{tuple(tensors[name].shape)}".encode(), crc)
        crc = zlib.crc32(tensors[name].reshape(-1).view(torch.uint8).numpy().data, crc)
    return crc


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """The values that differ, by name, in plain nested values.

    >>> differences({"run": {"epochs": 3, "batch": 8}}, {"run": {"epochs": 5, "batch": 8}})
    ['run.epochs was 3 and is 5']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        names = dict.fromkeys([*old, *new])
        dotted = [(name, f"{where}.{name}" if where else str(name)) for name in names]
        return [line for name, path in dotted for line in differences(old.get(name), new.get(name), path)]
    if old == new:
        return []
    short = all(isinstance(one, str | int | float | None) for one in (old, new))
    return [f"{where} was {old!r} and is {new!r}" if short else f"{where} differs"]


def load_state(
    folder: Path,
    module: nn.Module,
    loss: nn.Module,
    optimiser: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> None:
    """Load the saved state into the module, the loss, the optimiser and the scaler."""
    from safetensors.torch import load_file

    facts = read_facts(folder)
    if facts is None:
        raise TrainingError(f"there is no {FILE} in {folder}; there is nothing to resume")
    tensors = load_file(folder / FILE)
    if facts.get("check", whole := checksum(tensors)) != whole:
        raise TrainingError(f"{folder / FILE} is damaged: its checksum does not match", START_AGAIN)
    try:
        module.load_state_dict(_under(tensors, "module."))
        loss.load_state_dict(_under(tensors, "loss."))
    except RuntimeError as error:
        raise TrainingError(f"the state in {folder} is of another model: {error}") from None
    together = any(group.get("capturable") or group.get("fused") for group in optimiser.param_groups)
    for number, p in enumerate(_parameters(optimiser)):
        saved = _under(tensors, f"optimiser.{number}.")
        for name, value in saved.items():
            # Counters of steps are read by the host unless one kernel does it all; the rest lies with p.
            apart = value.ndim == 0 and not together
            optimiser.state[p][name] = value if apart else value.to(p.device)
    if isinstance(optimiser, RAdam):
        optimiser.steps = int(facts["optimiser_steps"])
    if scaler.is_enabled():
        scaler.load_state_dict(facts["scaler"])


def _parameters(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimiser.param_groups for p in group["params"]]


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
