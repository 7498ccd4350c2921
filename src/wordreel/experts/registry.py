"""All experts by name. An expert's module is imported only when it is needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from wordreel.errors import NextStep, WordreelError
from wordreel.experts.base import Card, Expert, Recogniser
from wordreel.runtime.store import WeightStore

EMBEDDED = ("appearance", "clip", "motion", "sound", "speech", "ocr", "faces", "faces_arc", "shots")
"""Experts whose weights come from the package index (or that need none), one module each."""

PUBLISHED = (
    "senet154",
    "resnext101_wsl",
    "i3d_paper",
    "s3d",
    "r2p1d34_ig65m",
    "densenet161_places365",
    "vggish",
    "vggface2_resnet50",
)
"""Experts of the papers, whose published checkpoints users add with `wordreel weights add`."""

MODULES = (*EMBEDDED, "vggish", "vggface2_resnet50")
"""Experts with a module of their own; the others are rows of the table in `published`."""

RECOGNISING = ("appearance", "motion", "sound")
"""Experts with classes, whose `recogniser` scores stored tracks."""


def cards(store: WeightStore | None = None) -> dict[str, Card]:
    """The card of every expert, by name; the image towers of the backbones in `store` come last.

    >>> cards()["motion"].dim
    1024
    """
    from wordreel.backbones.installed import installed
    from wordreel.experts.backbone import backbone_card

    found = installed(store or WeightStore()).values()
    return _fixed_cards() | {one.name: backbone_card(one.config, one.licence) for one in found}


@cache
def _fixed_cards() -> dict[str, Card]:
    from wordreel.experts import published

    return {
        name: _module(name).CARD if name in MODULES else published.EXPERTS[name].card
        for name in (*EMBEDDED, *PUBLISHED)
    }


def card(name: str, store: WeightStore | None = None) -> Card:
    """The card of one expert; a WordreelError if there is no such expert."""
    known = _fixed_cards().get(name) or cards(store).get(name)
    if known is None:
        raise WordreelError(f"there is no expert named {name!r}", NextStep("list all experts", "experts"))
    return known


def default_names() -> list[str]:
    """The experts that `add` runs by default."""
    return [name for name, card in _fixed_cards().items() if card.default]


def sees_single_frames(name: str) -> bool:
    """Whether an expert gives a row for each frame by itself, also of frames far apart.

    >>> sees_single_frames("clip"), sees_single_frames("motion")
    (True, False)
    """
    return name in ("appearance", "clip") or name not in _fixed_cards()


def is_current(name: str, have: str, wanted: str) -> bool:
    """Whether a track of fingerprint `have` is as good as one of fingerprint `wanted`, or better."""
    better = name == "clip" and _module(name).is_better(have, wanted)
    known = _fixed_cards().get(name)  # none of an expert that was imported
    return have == wanted or better or (known is not None and have in known.also)


def load(name: str, store: WeightStore | None = None) -> Expert:
    """Load an expert with its weights, checked.

    Args:
        name: The expert; `cards(store)` lists them.
        store: Where its weights are; the default store if None.

    Raises:
        WordreelError: There is no such expert.
        WeightsError: Its weights are missing or damaged.
    """
    from wordreel.backbones.installed import open_backbone
    from wordreel.experts import published
    from wordreel.experts.backbone import BackboneExpert

    weights = store or WeightStore()
    known = card(name, weights)
    if name not in _fixed_cards():
        return BackboneExpert(known, open_backbone(weights, name))
    if name not in MODULES:
        return published.EXPERTS[name].load(weights)
    expert: Expert = _module(name).load(weights)
    return expert


def load_quick(name: str, store: WeightStore) -> Expert:
    """Load an expert for the quick pass: its cheaper variant, if it has one."""
    quick = getattr(_module(name), "load_quick", None) if name in MODULES else None
    expert: Expert = load(name, store) if quick is None else quick(store)
    return expert


def recogniser(name: str, store: WeightStore | None = None) -> Recogniser:
    """Load the classifier of one of the `RECOGNISING` experts, without its network."""
    if name not in RECOGNISING:
        card(name)  # says so if there is no such expert
    recogniser: Recogniser = _module(name).recogniser(store or WeightStore())
    return recogniser


def _module(name: str) -> ModuleType:
    return import_module(f"wordreel.experts.{name}")
