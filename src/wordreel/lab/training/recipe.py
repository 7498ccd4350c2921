"""A recipe: one model, its data and how it is trained. Small TOML files; any value can be overridden.

title = "CE on MSVD"
[model]
base = "ce"                 # of `wordreel models`; or kind and the fields of its configuration in full
experts = ["face", "ocr"]   # which of the base's are used, and in which order; all where left out
dim = 768
[model.text]                # fields of wordreel.lab.models.config.TextConfig
clusters = 12
[model.expert.ocr]          # fields of wordreel.lab.models.config.ExpertConfig, new experts too
clusters = 75
[data] [frames] [loss] [optimiser] [schedule] [run] [teach] [start]      # wordreel.lab.training.settings

A model that reads frames has no experts; its `backbone` is the name of a published CLIP, or a section with
arguments of `small_clip`. Its recipes are named MODEL-DATASET (`clip4clip-mean-msvd`):
`recipes/clip/models/MODEL.toml` with `recipes/clip/datasets/DATASET.toml` over it, and over both what the
dataset says `for.MODEL`. `inherit = "NAME"` starts from another recipe.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.config import ModelConfig
from wordreel.lab.training.from_dict import did_you_mean, from_dict, parse_toml
from wordreel.lab.training.model_section import read_model
from wordreel.lab.training.settings import (
    DataSettings,
    FrameSettings,
    LossSettings,
    OptimiserSettings,
    RunSettings,
    ScheduleSettings,
    StartSettings,
    TeachSettings,
)

FOLDER = resources.files("wordreel.lab.training") / "recipes"
WORDS = ("title", "paper", "notes")
ONLY_FEATURES = (
    "data.words", "data.window", "data.segment_words", "data.until", "run.expert_dropout", "run.compile",
    "teach.teachers", "teach.denoise", "start.text",
)  # fmt: skip
ONLY_FRAMES = ("frames.crop", "frames.flip", "start.backbone", "start.scratch", "start.frozen_layers")


@dataclass(frozen=True)
class Recipe:
    """Everything about a training but its data."""

    name: str
    model: ModelConfig | VideoTextConfig
    title: str = ""
    paper: str = ""
    notes: tuple[str, ...] = ()
    data: DataSettings = field(default_factory=DataSettings)
    frames: FrameSettings = field(default_factory=FrameSettings)
    loss: LossSettings = field(default_factory=LossSettings)
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    run: RunSettings = field(default_factory=RunSettings)
    teach: TeachSettings = field(default_factory=TeachSettings)
    start: StartSettings = field(default_factory=StartSettings)

    def __post_init__(self) -> None:
        kind = "features" if self.reads_frames else "frames"
        for key in ONLY_FEATURES if self.reads_frames else ONLY_FRAMES:
            section, _, name = key.partition(".")
            if getattr(getattr(self, section), name) != getattr(SECTIONS[section](), name):
                raise TrainingError(f"{key} is for models that read {kind}; this one does not")

    @property
    def reads_frames(self) -> bool:
        """Whether the model reads the frames of videos, and not the features of experts."""
        return isinstance(self.model, VideoTextConfig)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, the model in full."""
        return {**asdict(self), "notes": list(self.notes)}

    def with_seed(self, seed: int) -> Recipe:
        """Return the recipe with another seed."""
        return replace(self, run=replace(self.run, seed=seed))


SECTIONS: dict[str, Any] = {
    f.name: f.default_factory for f in fields(Recipe) if isinstance(f.default_factory, type)
}


def names() -> list[str]:
    """Return the name of every recipe that comes with wordreel.

    >>> {"ce-msvd", "small-clip", "clip4clip-mean-msvd"} <= set(names())
    True
    """
    models, datasets = _stems("clip/models"), _stems("clip/datasets")
    return sorted([*_stems("."), *(f"{model}-{dataset}" for model in models for dataset in datasets)])


def load(source: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Return a recipe by name or from a file of one's own, with `key=value` overrides.

    >>> load("ce-msvd", ["run.epochs=3", "model.text.clusters=4"]).model.text.clusters
    4
    """
    try:
        values = _values(str(source))
    except RecursionError:
        raise TrainingError(f"recipe {source} inherits from itself") from None
    for override in overrides:
        put(values, override)
    return parse(Path(source).stem if str(source).endswith(".toml") else str(source), values)


def parse(name: str, values: Mapping[str, Any]) -> Recipe:
    """Return a recipe from its plain values."""
    known = ["model", *WORDS, *SECTIONS]
    for key, value in values.items():
        if key not in known:
            raise TrainingError(f"recipe {name} has an unknown {key!r}; {did_you_mean(key, known)}")
        if key not in WORDS and not isinstance(value, Mapping):
            raise TrainingError(f"recipe {name}: {key} is a section, not {value!r}")
    if "model" not in values:
        raise TrainingError(f"recipe {name} has no [model]")
    sections: dict[str, Any] = {
        key: from_dict(kind, values.get(key, {}), key) for key, kind in SECTIONS.items()
    }
    model = read_model(values["model"], sections["start"].backbone)
    title, paper = (str(values.get(key, "")) for key in ("title", "paper"))
    return Recipe(name, model, title, paper, tuple(map(str, values.get("notes", ()))), **sections)


def put(values: dict[str, Any], override: str) -> None:
    """Set one `section.key=value`; the value is read as TOML, or as text where it is none.

    >>> values = {"run": {"batch": 64}}
    >>> put(values, "run.batch=32"); put(values, "loss.kind=info-nce"); values
    {'run': {'batch': 32}, 'loss': {'kind': 'info-nce'}}
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise TrainingError(f"an override is section.key=value, not {override!r}")
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):
        value = text
    path = key.strip().split(".")
    if path[:2] == ["model", "expert"] and path[2:]:
        # Names of experts hold dots: model.expert.r2p1d.r2p1d-ig65m.0.dim
        path = [*path[:2], ".".join(path[2:-1]), path[-1]]
    section = values
    for part in path[:-1]:
        section = section.setdefault(part, {})
        if not isinstance(section, dict):
            raise TrainingError(f"{key}: {part} is not a section")
    section[path[-1]] = value


def _values(source: str) -> dict[str, Any]:
    """Return the plain values of a recipe, with those that it inherits."""
    for folder in (".", "clip/models"):
        if source in _stems(folder):
            return _inherited(_read(FOLDER / folder / f"{source}.toml"))
    if source.endswith(".toml") and Path(source).is_file():
        return _inherited(_read(Path(source)))
    if source not in names():
        raise TrainingError(
            f"there is no recipe {source!r}; {did_you_mean(source, names())}",
            NextStep("list the recipes", command="models"),
        )
    dataset = max((stem for stem in _stems("clip/datasets") if source.endswith(f"-{stem}")), key=len)
    model = source.removesuffix(f"-{dataset}")
    below, over = _values(model), _read(FOLDER / "clip/datasets" / f"{dataset}.toml")
    special = over.pop("for", {}).get(model.partition("-")[0], {})
    title = f"{below['title']} on {over.pop('title')}"
    return {**_merge(_merge(below, over), special), "title": title}


def _inherited(values: dict[str, Any]) -> dict[str, Any]:
    parent = values.pop("inherit", None)
    return values if parent is None else _merge(_values(str(parent)), values)


def _merge(below: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Values of both; where both have a section, its values one by one.

    >>> _merge({"run": {"batch": 8, "seed": 1}}, {"run": {"seed": 2}})
    {'run': {'batch': 8, 'seed': 2}}
    """
    merged = dict(below)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _read(path: Any) -> dict[str, Any]:
    try:
        content: bytes = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"recipe {path.name} cannot be read: {error.strerror or error}") from None
    return parse_toml(content, f"recipe {path.name}")


def _stems(folder: str) -> list[str]:
    return [path.name[:-5] for path in (FOLDER / folder).iterdir() if path.name.endswith(".toml")]
