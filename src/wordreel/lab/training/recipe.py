"""A recipe: one model, its data and how it is trained. Small TOML files; any value can be overridden.

title = "CE on MSVD"
[model]
base = "ce"                 # of `wordreel models`; or kind, experts and text in full
experts = ["face", "ocr"]   # which of the base's are used, and in which order; all where left out
dim = 768
[model.text]                # fields of wordreel.lab.models.config.TextConfig
clusters = 12
[model.expert.ocr]          # fields of wordreel.lab.models.config.ExpertConfig, new experts too
clusters = 75
[data] [loss] [optimiser] [schedule] [run] [teach] [start]      # wordreel.lab.training.settings
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Self

from wordreel.errors import TrainingError
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.config import ModelConfig
from wordreel.lab.training.from_dict import did_you_mean, from_dict
from wordreel.lab.training.model_section import read_model
from wordreel.lab.training.settings import (
    DataSettings,
    LossSettings,
    OptimiserSettings,
    RunSettings,
    ScheduleSettings,
    StartSettings,
    TeachSettings,
)
from wordreel.lab.training.toml_file import read_toml

SECTIONS = {
    "data": DataSettings, "loss": LossSettings, "optimiser": OptimiserSettings, "schedule": ScheduleSettings,
    "run": RunSettings, "teach": TeachSettings, "start": StartSettings,
}  # fmt: skip
WORDS = ("title", "paper", "notes")
RENAMED = {
    ("optimiser", "rate"): "optimiser.lr",
    ("optimiser", "text_rate"): "optimiser.text_lr",
    ("optimiser", "lookahead_share"): "optimiser.lookahead_alpha",
    ("data", "stretch"): "data.segment_words",
}


@dataclass(frozen=True)
class BaseRecipe:
    """What recipes of models that read features and frames have in common."""

    name: str
    model: ModelConfig | VideoTextConfig
    title: str = ""
    paper: str = ""
    notes: tuple[str, ...] = ()
    data: DataSettings = field(default_factory=DataSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def to_json(self) -> dict[str, Any]:
        """Plain values, the model in full."""
        return {**asdict(self), "notes": list(self.notes)}

    def with_seed(self, seed: int) -> Self:
        return replace(self, run=replace(self.run, seed=seed))


@dataclass(frozen=True)
class Recipe(BaseRecipe):
    model: ModelConfig
    teach: TeachSettings = field(default_factory=TeachSettings)
    start: StartSettings = field(default_factory=StartSettings)

    def __post_init__(self) -> None:
        text = self.model.text
        if self.data.shorten_captions and (text.words != "bert" or text.frozen):
            raise TrainingError(
                "data.shorten_captions leaves out word pieces in every step, and these captions are "
                + ("encoded once (model.text.frozen)" if text.frozen else f"{text.words}")
                + "; set data.shorten_captions=0"
            )
        if self.loss.soft_targets and self.data.segment_words:
            raise TrainingError(
                "loss.soft_targets compare whole captions, and data.segment_words draws parts of them; "
                "set one to 0"
            )
        for key in ("expert_dropout_spares", "alone"):
            unknown = [name for name in getattr(self.run, key) if name not in self.model.names]
            if unknown:
                raise TrainingError(
                    f"run.{key} names {unknown[0]}; {did_you_mean(unknown[0], list(self.model.names))}"
                )


def names() -> list[str]:
    """Every recipe that comes with wordreel.

    >>> "ce-msvd" in names()
    True
    """
    return sorted(path.name[:-5] for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe by name or from a file of one's own, with `key=value` overrides.

    >>> load("ce-msvd", ["run.epochs=3", "model.text.clusters=4"]).model.text.clusters
    4
    """
    path = Path(source)
    if str(source) in names():
        name, file = str(source), _folder() / f"{source}.toml"
    elif path.suffix == ".toml" and path.is_file():
        name, file = path.stem, path
    else:
        raise TrainingError(f"there is no recipe {str(source)!r}; {did_you_mean(str(source), names())}")
    values = read_toml(file, f"recipe {name}")
    for override in overrides:
        put(values, override)
    return parse(name, values)


def parse(name: str, values: Mapping[str, Any]) -> Recipe:
    """A recipe from its plain values."""
    arguments = read_sections(name, values, SECTIONS)
    return Recipe(model=read_model(values["model"]), **arguments)


def read_sections(name: str, values: Mapping[str, Any], sections: Mapping[str, type]) -> dict[str, Any]:
    """Name, words and sections of a recipe's plain values; a recipe has a [model] and nothing unknown."""
    known = ["model", *WORDS, *sections]
    for key in values:
        if key not in known:
            raise TrainingError(f"recipe {name} has an unknown {key!r}; {did_you_mean(key, known)}")
    if not isinstance(values.get("model"), Mapping):
        raise TrainingError(f"recipe {name} has no [model]")
    arguments: dict[str, Any] = {"name": name, "notes": tuple(map(str, values.get("notes", ())))}
    for key in ("title", "paper"):
        arguments[key] = str(values.get(key, ""))
    for key, kind in sections.items():
        section = values.get(key, {})
        if not isinstance(section, Mapping):
            raise TrainingError(f"recipe {name}: {key} is a section, not {section!r}")
        for old, new in RENAMED.items():
            if old[0] == key and old[1] in section:
                raise TrainingError(f"recipe {name}: {'.'.join(old)} is now {new}")
        arguments[key] = from_dict(kind, section, key)
    return arguments


def put(values: dict[str, Any], override: str) -> None:
    """Set one `section.key=value`; the value is read as TOML, or as text where it is none.

    >>> held = {"run": {"batch": 64}}
    >>> put(held, "run.batch=32"); put(held, "loss.kind=info-nce"); held
    {'run': {'batch': 32}, 'loss': {'kind': 'info-nce'}}
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise TrainingError(f"an override is section.key=value, not {override!r}")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):
        value = text
    *path, last = _path(key.strip())
    section = values
    for part in path:
        inner = section.setdefault(part, {})
        if not isinstance(inner, dict):
            raise TrainingError(f"{key}: {part} is not a section")
        section = inner
    section[last] = value


def _path(key: str) -> list[str]:
    """Names of experts hold dots: model.expert.r2p1d.r2p1d-ig65m.0.dim."""
    if key.startswith("model.expert."):
        name, _, last = key.removeprefix("model.expert.").rpartition(".")
        return ["model", "expert", name, last]
    return key.split(".")


def _folder() -> Any:
    return resources.files("wordreel.lab.training") / "recipes"
