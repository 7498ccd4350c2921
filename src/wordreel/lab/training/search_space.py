"""Search spaces: which values of a recipe a hyper-parameter search tries. TOML files:

"loss.margin" = {low = 0.05, high = 0.4}
"optimiser.lr" = {low = 1e-5, high = 1e-2, log = true}
"run.batch" = [16, 32, 64]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.errors import TrainingError
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.toml_file import read_toml


def space_names() -> list[str]:
    """The search spaces that come with wordreel.

    >>> space_names()
    ['ce']
    """
    return sorted(path.name[:-5] for path in _folder().iterdir() if path.name.endswith(".toml"))


def read_space(source: str | Path) -> dict[str, Any]:
    """Read a space by name or from a TOML file.

    >>> read_space("ce")["model.text.ghosts"]
    [0, 1, 2]
    """
    file = _folder() / f"{source}.toml" if str(source) in space_names() else Path(source)
    return read_toml(file, f"the search space {source}")


def check_space(space: Mapping[str, Any], load: Callable[[list[str]], Recipe]) -> None:
    """Check every key and value against the recipe: a wrong one would fail every trial.

    Raises:
        TrainingError: A key is not one of the recipe's, or the recipe refuses a value or a bound.
    """
    if not space:
        raise TrainingError('the search space is empty; write lines such as "run.batch" = [32, 64]')
    for key, choice in space.items():
        for value in _values_to_check(key, choice):
            load(as_overrides({key: value}))


def suggest(trial: Any, key: str, choice: Any) -> Any:
    """Let an Optuna trial pick a value: from a list, or between two numbers (integers if both are)."""
    if isinstance(choice, list | tuple):
        return trial.suggest_categorical(key, list(choice))
    if not isinstance(choice, Mapping) or not {"low", "high"} <= set(choice):
        raise TrainingError(f"{key} must be a list of values or {{low = …, high = …}}, not {choice!r}")
    low, high, log = choice["low"], choice["high"], bool(choice.get("log", False))
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(key, low, high, log=log)
    return trial.suggest_float(key, float(low), float(high), log=log)


def as_overrides(values: Mapping[str, Any]) -> list[str]:
    """
    >>> as_overrides({"run.batch": 16, "loss.kind": "info-nce", "run.compile": True})
    ['run.batch=16', 'loss.kind=info-nce', 'run.compile=true']
    """
    return [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values.items()
    ]


def _values_to_check(key: str, choice: Any) -> list[Any]:
    """All values of a list, or both bounds."""
    if isinstance(choice, list) and choice:
        return choice
    if not isinstance(choice, Mapping) or not {"low", "high"} <= set(choice) <= {"low", "high", "log"}:
        raise TrainingError(
            f"{key} must be a list of values or {{low = …, high = …, log = true}}, not {choice!r}"
        )
    bounds = [choice["low"], choice["high"]]
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in bounds):
        raise TrainingError(f"{key}: low and high must be numbers, not {bounds[0]!r} and {bounds[1]!r}")
    if not all(map(math.isfinite, bounds)) or bounds[0] > bounds[1] or (choice.get("log") and bounds[0] <= 0):
        positive = " and must be above 0 on a logarithmic scale" if choice.get("log") else ""
        raise TrainingError(f"{key}: low must not exceed high{positive}: {bounds[0]} and {bounds[1]}")
    return bounds


def _folder() -> Any:
    return resources.files("wordreel.lab.training") / "search_spaces"
