"""The published models by name: their configurations and sizes, without torch.

`data/models.json` holds what differs from the defaults of a configuration, or from the model that `base`
names. Experts, frames and hyper-parameters are those of MSR-VTT unless the name says otherwise; MoEE's are
those of the CE code. Sizes are in `data/parameters.json`, so that a list needs neither torch nor time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

from wordreel.lab.models.clip import config as video_text
from wordreel.lab.models.config import KINDS, ModelConfig, from_json

Config = TypeVar("Config")


@dataclass(frozen=True)
class RegisteredModel(Generic[Config]):
    """One published configuration. `released` says whether its authors published checkpoints."""

    title: str
    paper: str
    config: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Config]
    released: bool = False

    def make(self) -> Config:
        """Return the configuration."""
        return self.read(self.config)


def _registered(
    kinds: Iterable[str], read: Callable[[Mapping[str, Any]], Config]
) -> dict[str, RegisteredModel[Config]]:
    models = {}
    for name, entry in _data("models").items():
        base = _data("models")[entry["base"]]["config"] if "base" in entry else {}
        config = {**base, **entry["config"]}
        if config["kind"] in kinds:
            released = entry.get("released", False)
            models[name] = RegisteredModel(entry["title"], entry["paper"], config, read, released)
    return models


@cache
def _data(name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((files("wordreel.lab.models") / "data" / f"{name}.json").read_bytes())
    return values


MODELS: dict[str, RegisteredModel[ModelConfig]] = _registered(KINDS, from_json)
VIDEO_TEXT_MODELS: dict[str, RegisteredModel[video_text.VideoTextConfig]] = _registered(
    video_text.KINDS, video_text.from_json
)


def parameters() -> dict[str, dict[str, int]]:
    """Return the sizes of all "models" and all "recipes", by name.

    >>> parameters()["models"]["ce"]
    183448607
    """
    return _data("parameters")
