"""The [model] section of a recipe: a published model with changes, or one described in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

from wordreel.errors import TrainingError
from wordreel.lab.models.config import KINDS, ExpertConfig, ModelConfig, TextConfig, TransformerConfig
from wordreel.lab.models.registry import MODELS
from wordreel.lab.training.from_dict import did_you_mean, from_dict

AT_LEAST_ONE = ("dim", "layers", "heads", "inner", "positions", "hidden", "lstm")


def read_model(section: Mapping[str, Any]) -> ModelConfig:
    """
    >>> read_model({"base": "ce", "experts": ["face", "ocr"], "dim": 512}).names
    ('face', 'ocr')
    """
    values = dict(section)
    base = values.pop("base", None)
    if base is not None and str(base) not in MODELS:
        raise TrainingError(f"there is no model {base!r}; {did_you_mean(str(base), list(MODELS))}")
    base_config = MODELS[base].make() if base is not None else None
    kind = values.pop("kind", base_config.kind if base_config is not None else None)
    if str(kind) not in KINDS:
        raise TrainingError(f"model.kind is one of {', '.join(KINDS)}, not {kind!r}")
    experts = _experts(
        base_config.experts if base_config else (), values.pop("experts", None), values.pop("expert", {})
    )
    text = _text(base_config.text if base_config else None, values.pop("text", {}))
    same = base_config is not None and base_config.kind == kind
    inherited = (
        {}
        if base_config is None or not same
        else {k: getattr(base_config, k) for k in asdict(base_config) if k != "kind"}
    )
    config = from_dict(KINDS[kind], {**inherited, **values, "experts": experts, "text": text}, "model")
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


def _experts(
    base: tuple[ExpertConfig, ...], order: Any, changes: Mapping[str, Mapping[str, Any]]
) -> tuple[ExpertConfig, ...]:
    if not isinstance(changes, Mapping):
        raise TrainingError(f"model.expert is a section for each expert, not {changes!r}")
    known = {expert.name: expert for expert in base}
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
    missing = [str(name) for name in order if name not in known]
    if missing:
        raise TrainingError(
            f"model.experts names {', '.join(missing)}, which has no [model.expert.{missing[0]}]; "
            f"{did_you_mean(missing[0], list(known))}"
        )
    return tuple(known[name] for name in order)


def _text(base: TextConfig | None, changes: Mapping[str, Any]) -> TextConfig:
    if not isinstance(changes, Mapping):
        raise TrainingError(f"model.text is a section, not {changes!r}")
    values = dict(changes)
    network = values.pop("network", None)
    if isinstance(network, Mapping):
        values["network"] = from_dict(TransformerConfig, network, "model.text.network")
    if base is None:
        return from_dict(TextConfig, values, "model.text")
    inherited = {name: getattr(base, name) for name in asdict(base)}
    return replace(from_dict(TextConfig, {**inherited, **values}, "model.text"))
