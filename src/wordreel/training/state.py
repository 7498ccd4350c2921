"""What a run needs to go on as if it had never stopped: one safetensors file with its facts inside.

Random numbers need no keeping, being functions of the seed and the step.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.atomic import atomic_write, make_dir
from wordreel.errors import TrainingError
from wordreel.training.optimisers.radam import RAdam

FILE, KEY, FORMAT = "state.safetensors", "wordreel", 1
ANEW = "begin anew with --overwrite, or name another --out"
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
    held = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    facts = {**facts, "check": checksum(held)}
    steps = optimiser.steps if isinstance(optimiser, RAdam) else 0
    known = {**facts, "format": FORMAT, "optimiser_steps": steps, "scaler": scaler.state_dict()}
    atomic_write(folder / FILE, save(held, metadata={KEY: json.dumps(known)}))


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What a state says about its run; None where there is none."""
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(str(path), "pt") as file:
            facts = json.loads((file.metadata() or {})[KEY])
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise TrainingError(f"{path} cannot be read ({error}); {ANEW}") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise TrainingError(f"{path} is of another version; {ANEW}")
    wrong = [key for key, kind in FACTS.items() if not isinstance(facts.get(key), kind)]
    if wrong or "best_figures" not in facts:
        raise TrainingError(f"{path} does not say its {', '.join(wrong) or 'best_figures'}; {ANEW}")
    return facts


def checksum(held: Mapping[str, Tensor]) -> int:
    """Of every tensor with its name and shape: bits that a disk lost, not somebody's ill will."""
    found = 0
    for name in sorted(held):
        found = zlib.crc32(f"{name}\x1f{held[name].dtype}\x1f{tuple(held[name].shape)}".encode(), found)
        found = zlib.crc32(held[name].reshape(-1).view(torch.uint8).numpy().data, found)
    return found


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """The values that differ, by name, in plain nested values.

    >>> differences({"run": {"epochs": 3, "batch": 8}}, {"run": {"epochs": 5, "batch": 8}})
    ['run.epochs was 3 and is 5']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        names = dict.fromkeys([*old, *new])
        dotted = [(name, f"{where}.{name}" if where else str(name)) for name in names]
        return [told for name, path in dotted for told in differences(old.get(name), new.get(name), path)]
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
    """Put everything back where it was."""
    from safetensors.torch import load_file

    facts = read_facts(folder)
    if facts is None:
        raise TrainingError(f"there is no {FILE} in {folder}; there is nothing to resume")
    held = load_file(folder / FILE)
    if facts.get("check", whole := checksum(held)) != whole:
        raise TrainingError(f"{folder / FILE} is damaged: it is not what was written; {ANEW}")
    try:
        module.load_state_dict(_under(held, "module."))
        loss.load_state_dict(_under(held, "loss."))
    except RuntimeError as error:
        raise TrainingError(f"the state in {folder} is of another model: {error}") from None
    together = any(group.get("capturable") or group.get("fused") for group in optimiser.param_groups)
    for number, p in enumerate(_parameters(optimiser)):
        found = _under(held, f"optimiser.{number}.")
        for name, value in found.items():
            # Counters of steps are read by the host unless one kernel does it all; the rest lies with p.
            apart = value.ndim == 0 and not together
            optimiser.state[p][name] = value if apart else value.to(p.device)
    if isinstance(optimiser, RAdam):
        optimiser.steps = int(facts["optimiser_steps"])
    if scaler.is_enabled():
        scaler.load_state_dict(facts["scaler"])


def _parameters(optimiser: torch.optim.Optimizer) -> list[Tensor]:
    return [p for group in optimiser.param_groups for p in group["params"]]


def _under(held: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in held.items() if name.startswith(prefix)}
