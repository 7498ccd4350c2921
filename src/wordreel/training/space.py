"""A search space is checked before the first trial: a wrong key would fail every one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from wordreel.errors import TrainingError
from wordreel.training.recipe import Recipe
from wordreel.training.search import as_overrides


def check_space(space: Mapping[str, Any], load: Callable[[list[str]], Recipe]) -> None:
    """Every key must be one of the recipe's, and its bounds or values must be such as the recipe takes."""
    if not space:
        raise TrainingError('the search space is empty; write lines such as "run.batch" = [32, 64]')
    for key, choice in space.items():
        for value in _ends(key, choice):
            load(as_overrides({key: value}))


def _ends(key: str, choice: Any) -> list[Any]:
    """Values to try a key with: all of a list, or both bounds."""
    if isinstance(choice, list) and choice:
        return choice
    if not isinstance(choice, Mapping) or not {"low", "high"} <= set(choice) <= {"low", "high", "log"}:
        raise TrainingError(f"{key} is a list of values or {{low = …, high = …, log = true}}, not {choice!r}")
    ends = [choice["low"], choice["high"]]
    if any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
        raise TrainingError(f"{key}: low and high are numbers, not {ends[0]!r} and {ends[1]!r}")
    if not all(map(math.isfinite, ends)) or ends[0] > ends[1] or (choice.get("log") and ends[0] <= 0):
        above = " and above 0, being searched by logarithm" if choice.get("log") else ""
        raise TrainingError(f"{key}: low must not be above high{above}: {ends[0]} and {ends[1]}")
    return ends
