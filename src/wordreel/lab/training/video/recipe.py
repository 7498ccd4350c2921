"""Recipes of models that read frames: one video-text model, its data and how it is trained.

A recipe is named MODEL-DATASET (`clip4clip-mean-msvd`): `recipes/models/MODEL.toml` with
`recipes/datasets/DATASET.toml` over it, and over both what the dataset says `for.MODEL`. Recipes that stand
for themselves are in `recipes/`; `inherit = "NAME"` starts from another one. Sections are those of
`wordreel.lab.training.recipe`, except for

[model]      # base (of `wordreel models`) or kind, and fields of lab.models.clip.config; `backbone` is
             # the name of a published CLIP, or a section with arguments of `small_clip`
[frames] [start]    # wordreel.lab.training.video.settings
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.models.clip.config import KINDS, VIT_B_16, VIT_B_32, ClipConfig, VideoTextConfig, small_clip
from wordreel.lab.models.registry import VIDEO_TEXT_MODELS
from wordreel.lab.training.from_dict import did_you_mean, from_dict
from wordreel.lab.training.recipe import BaseRecipe, put, read_sections
from wordreel.lab.training.settings import (
    DataSettings,
    LossSettings,
    OptimiserSettings,
    RunSettings,
    ScheduleSettings,
)
from wordreel.lab.training.toml_file import read_toml
from wordreel.lab.training.video.settings import FrameSettings, VideoStartSettings

SECTIONS = {
    "frames": FrameSettings, "data": DataSettings, "loss": LossSettings, "optimiser": OptimiserSettings,
    "schedule": ScheduleSettings, "run": RunSettings, "start": VideoStartSettings,
}  # fmt: skip
BACKBONES = {config.name: config for config in (VIT_B_32, VIT_B_16)}
OF_FEATURES = {
    "data": ("words", "window", "segment_words", "until", "shorten_captions"),
    "loss": ("soft_targets",),
    "run": ("expert_dropout", "expert_dropout_spares", "token_dropout", "alone", "alone_chance", "compile"),
}
"""Settings that a model which reads frames has no use for."""


@dataclass(frozen=True)
class VideoRecipe(BaseRecipe):
    model: VideoTextConfig
    frames: FrameSettings = field(default_factory=FrameSettings)
    start: VideoStartSettings = field(default_factory=VideoStartSettings)

    def __post_init__(self) -> None:
        for key, names in OF_FEATURES.items():
            section = getattr(self, key)
            plain = SECTIONS[key]()
            used = [name for name in names if getattr(section, name) != getattr(plain, name)]
            if used:
                raise TrainingError(f"{key}.{used[0]} is for models of features; this one reads frames")


def names() -> list[str]:
    """Every recipe of frames that comes with wordreel.

    >>> "clip4clip-mean-msvd" in names(), "small-clip" in names()
    (True, True)
    """
    whole = [path.name[:-5] for path in _folder().iterdir() if path.name.endswith(".toml")]
    return sorted(
        whole + [f"{model}-{dataset}" for model in _part("models") for dataset in _part("datasets")]
    )


def is_video_recipe(source: str | Path) -> bool:
    """Whether a recipe's name or file is one of a model that reads frames."""
    if str(source) in names():
        return True
    path = Path(source)
    if path.suffix != ".toml" or not path.is_file():
        return False
    values = _read_file(path)
    model, parent = values.get("model"), values.get("inherit")
    if not isinstance(model, Mapping):
        model = {}
    return parent in names() or str(model.get("kind")) in KINDS or str(model.get("base")) in VIDEO_TEXT_MODELS


def load(source: str | Path, overrides: Sequence[str] = ()) -> VideoRecipe:
    """A recipe by name or from a file of one's own, with `key=value` overrides.

    >>> load("ts2net-msrvtt-9k", ["run.epochs=3"]).run.epochs
    3
    """
    try:
        values = _values(source)
    except RecursionError:
        raise TrainingError(f"recipe {source} inherits from itself") from None
    for override in overrides:
        put(values, override)
    name = Path(source).stem if Path(source).suffix == ".toml" else str(source)
    return parse(name, values)


def parse(name: str, values: Mapping[str, Any]) -> VideoRecipe:
    """A recipe from its plain values."""
    arguments = read_sections(name, values, SECTIONS)
    return VideoRecipe(model=read_video_model(values["model"], arguments["start"].backbone), **arguments)


def read_video_model(section: Mapping[str, Any], backbone: str = "") -> VideoTextConfig:
    """The [model] section; `backbone` is the CLIP to start from, whose sizes the model then has.

    >>> read_video_model({"base": "clip4clip-lstm", "max_frames": 8}).max_frames
    8
    """
    values = dict(section)
    base = values.pop("base", None)
    if base is not None and str(base) not in VIDEO_TEXT_MODELS:
        raise TrainingError(f"there is no model {base!r}; {did_you_mean(str(base), list(VIDEO_TEXT_MODELS))}")
    start = VIDEO_TEXT_MODELS[base].make() if base is not None else None
    kind = str(values.pop("kind", start.kind if start is not None else ""))
    if kind not in KINDS:
        raise TrainingError(f"model.kind is one of {', '.join(KINDS)}, not {kind!r}")
    inherited: dict[str, Any] = {}
    if start is not None and start.kind == kind:
        inherited = {one.name: getattr(start, one.name) for one in fields(start) if one.name != "kind"}
    elif start is not None:
        inherited = {"backbone": start.backbone}
    if "backbone" in values:
        inherited["backbone"] = _backbone(values.pop("backbone"))
    if backbone:
        from wordreel.lab.checkpoints.clip import read_clip

        inherited["backbone"] = read_clip(Path(backbone))[0]
    return from_dict(KINDS[kind], {**inherited, **values}, "model")


def _backbone(value: Any) -> ClipConfig:
    if isinstance(value, Mapping):
        try:
            return small_clip(**value)
        except TypeError as error:
            raise TrainingError(f"model.backbone: {error}") from None
    if str(value) not in BACKBONES:
        raise TrainingError(f"model.backbone is one of {', '.join(BACKBONES)} or a section, not {value!r}")
    return BACKBONES[str(value)]


def _values(source: str | Path) -> dict[str, Any]:
    path, folder = Path(source), _folder()
    if (folder / f"{source}.toml").is_file():
        values = _read_file(folder / f"{source}.toml")
    elif path.suffix == ".toml" and path.is_file():
        values = _read_file(path)
    elif str(source) in names():
        dataset = max((one for one in _part("datasets") if str(source).endswith(f"-{one}")), key=len)
        model = str(source).removesuffix(f"-{dataset}")
        below = _read_file(folder / "models" / f"{model}.toml")
        over = _read_file(folder / "datasets" / f"{dataset}.toml")
        special = over.pop("for", {}).get(model.partition("-")[0], {})
        title = f"{below.pop('title', model)} on {over.pop('title', dataset)}"
        values = {**_merge(_merge(_inherited(below), over), special), "title": title}
    else:
        raise TrainingError(
            f"there is no recipe {str(source)!r}; {did_you_mean(str(source), names())}",
            NextStep("list the recipes", command="models"),
        )
    return _inherited(values)


def _inherited(values: dict[str, Any]) -> dict[str, Any]:
    parent = values.pop("inherit", None)
    if parent is None:
        return values
    part = _folder() / "models" / f"{parent}.toml"
    return _merge(_inherited(_read_file(part)) if part.is_file() else _values(str(parent)), values)


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


def _read_file(path: Any) -> dict[str, Any]:
    return read_toml(path, f"recipe {path.name}")


def _part(name: str) -> list[str]:
    return [path.name[:-5] for path in (_folder() / name).iterdir() if path.name.endswith(".toml")]


def _folder() -> Any:
    return resources.files("wordreel.lab.training") / "video" / "recipes"
