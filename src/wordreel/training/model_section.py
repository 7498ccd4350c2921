"""The [model] section of a recipe: a published model with changes, or one described in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from wordreel.errors import TrainingError
from wordreel.models.config import KINDS, Config, Expert, Text, Transformer
from wordreel.models.registry import MODELS
from wordreel.training.fill import fill, nearest


def read_model(section: Mapping[str, Any]) -> Config:
    """
    >>> read_model({"base": "ce", "experts": ["face", "ocr"], "dim": 512}).names
    ('face', 'ocr')
    """
    values = dict(section)
    base = values.pop("base", None)
    if base is not None and base not in MODELS:
        raise TrainingError(f"there is no model {base!r}; {nearest(str(base), list(MODELS))}")
    found = MODELS[base].make() if base is not None else None
    kind = values.pop("kind", found.kind if found is not None else None)
    if kind not in KINDS:
        raise TrainingError(f"model.kind is one of {', '.join(KINDS)}, not {kind!r}")
    experts = _experts(found.experts if found else (), values.pop("experts", None), values.pop("expert", {}))
    text = _text(found.text if found else None, values.pop("text", {}))
    same = found is not None and found.kind == kind
    kept = {} if found is None or not same else {k: getattr(found, k) for k in asdict(found) if k != "kind"}
    return fill(KINDS[kind], {**kept, **values, "experts": experts, "text": text}, "model")


def _experts(
    base: tuple[Expert, ...], order: Any, changes: Mapping[str, Mapping[str, Any]]
) -> tuple[Expert, ...]:
    known = {expert.name: expert for expert in base}
    for name, change in changes.items():
        old = asdict(known[name]) if name in known else {"name": name}
        known[name] = fill(Expert, {**old, **change}, f"model.expert.{name}")
    if order is None:
        return tuple(known.values())
    if not isinstance(order, list | tuple):
        raise TrainingError("model.experts is a list of names")
    missing = [str(name) for name in order if name not in known]
    if missing:
        raise TrainingError(
            f"model.experts names {', '.join(missing)}, which has no [model.expert.{missing[0]}]; "
            f"{nearest(missing[0], list(known))}"
        )
    return tuple(known[name] for name in order)


def _text(base: Text | None, changes: Mapping[str, Any]) -> Text:
    values = dict(changes)
    network = values.pop("network", None)
    if isinstance(network, Mapping):
        values["network"] = fill(Transformer, network, "model.text.network")
    if base is None:
        return fill(Text, values, "model.text")
    made = {name: getattr(base, name) for name in asdict(base)}
    return replace(fill(Text, {**made, **values}, "model.text"))
