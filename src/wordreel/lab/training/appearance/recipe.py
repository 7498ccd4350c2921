"""The recipe `appearance`: how the appearance network is trained further.

Sections are those of `wordreel.lab.training.recipe`, except for

[model]                   # wordreel.lab.models.appearance.picture_text.PictureTextConfig
[pictures] [fine_tune]    # wordreel.lab.training.appearance.settings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.errors import TrainingError
from wordreel.lab.models.appearance.config import PictureTextConfig
from wordreel.lab.training.appearance.settings import FineTuneSettings, PictureSettings
from wordreel.lab.training.from_dict import from_dict
from wordreel.lab.training.recipe import BaseRecipe, put, read_sections
from wordreel.lab.training.settings import (
    DataSettings,
    LossSettings,
    OptimiserSettings,
    RunSettings,
    ScheduleSettings,
)
from wordreel.lab.training.toml_file import read_toml

NAME = "appearance"
SECTIONS = {
    "pictures": PictureSettings, "fine_tune": FineTuneSettings, "data": DataSettings, "loss": LossSettings,
    "optimiser": OptimiserSettings, "schedule": ScheduleSettings, "run": RunSettings,
}  # fmt: skip


@dataclass(frozen=True)
class AppearanceRecipe(BaseRecipe):
    model: PictureTextConfig
    pictures: PictureSettings = field(default_factory=PictureSettings)
    fine_tune: FineTuneSettings = field(default_factory=FineTuneSettings)

    def __post_init__(self) -> None:
        if self.loss.kind == "max-margin":
            raise TrainingError("the appearance network trains with loss.kind=info-nce or dual-softmax")


def is_appearance_recipe(source: str | Path) -> bool:
    """Whether a recipe's name or file is one of the appearance network: it has [pictures]."""
    if str(source) == NAME:
        return True
    path = Path(source)
    return path.suffix == ".toml" and path.is_file() and "pictures" in _read(path)


def load(source: str | Path = NAME, overrides: Sequence[str] = ()) -> AppearanceRecipe:
    """The recipe, or one from a file of one's own, with `key=value` overrides.

    >>> load(overrides=["run.epochs=3"]).run.epochs
    3
    """
    own = str(source) == NAME
    path = resources.files("wordreel.lab.training") / NAME / f"{NAME}.toml" if own else Path(source)
    values = _read(path)
    for override in overrides:
        put(values, override)
    return parse(NAME if own else Path(source).stem, values)


def parse(name: str, values: Mapping[str, Any]) -> AppearanceRecipe:
    """A recipe from its plain values."""
    arguments = read_sections(name, values, SECTIONS)
    return AppearanceRecipe(model=from_dict(PictureTextConfig, values["model"], "model"), **arguments)


def _read(path: Any) -> dict[str, Any]:
    return read_toml(path, f"recipe {path.name}")
