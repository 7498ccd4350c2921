"""The [model] section of a recipe: a published model with changes, or one described in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from wordreel.errors import TrainingError
from wordreel.lab.models.clip.config import KINDS as FRAME_KINDS
from wordreel.lab.models.clip.config import VIT_B_16, VIT_B_32, ClipConfig, VideoTextConfig, small_clip
from wordreel.lab.models.config import KINDS, ExpertConfig, ModelConfig, TextConfig, TransformerConfig
from wordreel.lab.models.registry import MODELS, VIDEO_TEXT_MODELS
from wordreel.lab.training.from_dict import did_you_mean, from_dict

AT_LEAST_ONE = ("dim", "layers", "heads", "inner", "positions", "hidden", "lstm")
BACKBONES = {config.name: config for config in (VIT_B_32, VIT_B_16)}
BASES: dict[str, Any] = {**MODELS, **VIDEO_TEXT_MODELS}
ALL_KINDS: dict[str, Any] = {**KINDS, **FRAME_KINDS}


def read_model(section: Mapping[str, Any], backbone: str = "") -> ModelConfig | VideoTextConfig:
    """Return the model; `backbone` is the CLIP to start from, whose sizes a model that reads frames has.

    >>> read_model({"base": "ce", "experts": ["face", "ocr"], "dim": 512}).names
    ('face', 'ocr')
    >>> read_model({"base": "clip4clip-lstm", "max_frames": 8}).max_frames
    8
    """
    values = dict(section)
    name = values.pop("base", None)
    if name is not None and str(name) not in BASES:
        raise TrainingError(f"there is no model {name!r}; {did_you_mean(str(name), list(BASES))}")
    base: Any = BASES[name].make() if name is not None else None
    kind = str(values.pop("kind", base.kind if base is not None else None))
    if kind not in ALL_KINDS:
        raise TrainingError(f"model.kind is one of {', '.join(ALL_KINDS)}, not {kind!r}")
    same = base is not None and base.kind == kind
    inherited = {f.name: getattr(base, f.name) for f in fields(base) if f.name != "kind"} if same else {}
    if kind in FRAME_KINDS:
        if kept := _backbone(values.pop("backbone", None), backbone) or getattr(base, "backbone", None):
            values["backbone"] = kept
    else:
        values["experts"] = _experts(base, values.pop("experts", None), values.pop("expert", {}))
        values["text"] = _text(base, values.pop("text", {}))
    config: ModelConfig | VideoTextConfig = from_dict(ALL_KINDS[kind], {**inherited, **values}, "model")
    if kind in KINDS:
        _check_sizes(config, "model")
    return config


def _check_sizes(value: Any, where: str) -> None:
    """Whole numbers of a model are counts: none is below 0, and some must be above it."""
    for field in fields(value):
        member, name = getattr(value, field.name), f"{where}.{field.name}"
        if isinstance(member, int) and not isinstance(member, bool):
            least = 1 if field.name in AT_LEAST_ONE else 0
            if member < least:
                raise TrainingError(f"{name} must be at least {least}, not {member}")
        elif is_dataclass(member):
            _check_sizes(member, name)
        elif field.name == "experts":
            for expert in member:
                _check_sizes(expert, f"model.expert.{expert.name}")
    hidden, heads = getattr(value, "hidden", getattr(value, "dim", 0)), getattr(value, "heads", 1)
    if hidden % heads:
        raise TrainingError(f"{where}: {heads} heads do not share {hidden} numbers evenly")


def _experts(base: ModelConfig | None, order: Any, changes: Any) -> tuple[ExpertConfig, ...]:
    if not isinstance(changes, Mapping):
        raise TrainingError(f"model.expert is a section for each expert, not {changes!r}")
    known = {expert.name: expert for expert in base.experts} if base is not None else {}
    for name, change in changes.items():
        if not name or not isinstance(change, Mapping):
            raise TrainingError(
                f"model.expert.NAME is a section, not a value: model.expert.{name or 'NAME'}.dim=…"
            )
        old = asdict(known[name]) if name in known else {"name": name}
        known[name] = from_dict(ExpertConfig, {**old, **change}, f"model.expert.{name}")
    if order is None:
        return tuple(known.values())
    if not isinstance(order, list | tuple) or not order or len(set(map(str, order))) != len(order):
        raise TrainingError("model.experts is a list of names, at least one and each once")
    if missing := [str(name) for name in order if name not in known]:
        raise TrainingError(
            f"model.experts names {', '.join(missing)}, which has no [model.expert.{missing[0]}]; "
            f"{did_you_mean(missing[0], list(known))}"
        )
    return tuple(known[name] for name in order)


def _text(base: ModelConfig | None, changes: Any) -> TextConfig:
    if not isinstance(changes, Mapping):
        raise TrainingError(f"model.text is a section, not {changes!r}")
    values = {f.name: getattr(base.text, f.name) for f in fields(base.text)} if base is not None else {}
    values |= changes
    if isinstance(values.get("network"), Mapping):
        values["network"] = from_dict(TransformerConfig, values["network"], "model.text.network")
    return from_dict(TextConfig, values, "model.text")


def _backbone(value: Any, start: str) -> ClipConfig | None:
    """Return the CLIP that training starts from, or else the one that the recipe describes."""
    if start:
        from wordreel.lab.checkpoints.clip import read_clip

        return read_clip(Path(start))[0]
    if value is None:
        return None
    if isinstance(value, Mapping):
        try:
            return small_clip(**value)
        except TypeError as error:
            raise TrainingError(f"model.backbone: {error}") from None
    if str(value) not in BACKBONES:
        raise TrainingError(f"model.backbone is one of {', '.join(BACKBONES)} or a section, not {value!r}")
    return BACKBONES[str(value)]
