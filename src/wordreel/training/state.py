"""What a run needs to go on as if it had never stopped: one safetensors file with its facts inside.

Random numbers need no keeping, being functions of the seed and the step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordreel.errors import TrainingError
from wordreel.library.durable import make_folder, replace_with
from wordreel.training.optimisers.radam import RAdam

FILE, KEY, FORMAT = "state.safetensors", "wordreel", 1


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

    make_folder(folder)
    tensors = {f"module.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"loss.{name}": value for name, value in loss.state_dict().items()}
    for number, p in enumerate(_parameters(optimiser)):
        for name, value in optimiser.state.get(p, {}).items():
            tensors[f"optimiser.{number}.{name}"] = torch.as_tensor(value)
    held = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    steps = optimiser.steps if isinstance(optimiser, RAdam) else 0
    known = {**facts, "format": FORMAT, "optimiser_steps": steps, "scaler": scaler.state_dict()}
    replace_with(folder / FILE, save(held, metadata={KEY: json.dumps(known)}))


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
        raise TrainingError(f"{path} cannot be read ({error}); train again without --resume") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise TrainingError(f"{path} is of another version; train again without --resume")
    return facts


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
