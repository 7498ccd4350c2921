"""The models that a library can switch to, known without opening any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wordreel.backbones import installed as backbones
from wordreel.catalogue.store import LibraryStore
from wordreel.models import model_store
from wordreel.runtime.store import WeightStore

TITLE = "The model that comes with wordreel"


@dataclass(frozen=True)
class ModelChoice:
    """One model; `key` is what `use` takes. `download` is in bytes, 0 for what is on this machine."""

    key: str
    name: str
    kind: Literal["built-in", "trained", "backbone"]
    title: str
    in_use: bool
    download: int = 0
    licence: str = ""
    speed: str = ""


def model_choices(store: LibraryStore, weights: WeightStore) -> list[ModelChoice]:
    """List the built-in models, the library's own, the installed backbones, and those to download."""
    used = model_store.in_use(store)
    choices = [ModelChoice(name, name, "built-in", TITLE, name == used) for name in model_store.BUILT_IN]
    for own in model_store.stored_models(store):
        title = str(own.facts.get("title", ""))
        choices.append(ModelChoice(own.fingerprint, own.name, "trained", title, own.fingerprint == used))
    installed = backbones.installed(weights)
    for name in (*installed, *(name for name in backbones.NAMED if name not in installed)):
        named = backbones.NAMED.get(name)
        choices.append(
            ModelChoice(
                name,
                name,
                "backbone",
                named.title if named else name,
                name == used,
                download=0 if name in installed or named is None else round(named.megabytes * 1e6),
                licence=installed[name].licence if name in installed else named.licence if named else "",
                speed=named.speed if named else "",
            )
        )
    return choices
