"""How many parameters models and recipes have: stored, so that a list needs neither torch nor time."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files


@cache
def parameters() -> dict[str, dict[str, int]]:
    """Return the sizes of all "models" and all "recipes", by name.

    >>> parameters()["models"]["ce"]
    183448607
    """
    text = (files("wordreel.lab.models") / "data" / "parameters.json").read_text()
    sizes: dict[str, dict[str, int]] = json.loads(text)
    return sizes
