"""All experts by name. An expert's module is imported only when it is needed."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from wordreel.errors import NextStep, WordreelError
from wordreel.experts.base import Card, Expert, ExpertEntry, Recogniser
from wordreel.runtime.store import WeightStore

EMBEDDED = {
    name: name for name in ("appearance", "clip", "motion", "sound", "speech", "ocr", "faces", "shots")
}
"""Experts whose weights come from the package index (or that need none), and their modules."""

NETWORKS = ("senet154", "resnext101_wsl", "i3d_paper", "s3d", "r2p1d34_ig65m", "densenet161_places365")
PUBLISHED = {**dict.fromkeys(NETWORKS, "network_experts"), "vggish": "vggish", "vggface2_resnet50": "faces"}
"""Experts of the papers, whose published checkpoints users add with `wordreel weights add`."""

MODULES = {**EMBEDDED, **PUBLISHED}

RECOGNISING = ("appearance", "motion", "sound")
"""Experts with classes, whose `recogniser` scores stored tracks."""


def cards(store: WeightStore | None = None) -> dict[str, Card]:
    """Return the card of every expert, by name; the image towers of the backbones in `store` come last.

    >>> cards()["motion"].dim
    1024
    """
    from wordreel.backbones.installed import installed
    from wordreel.experts.network_experts import backbone_card

    found = installed(store or WeightStore()).values()
    return _fixed_cards() | {one.name: backbone_card(one.config, one.licence) for one in found}


@cache
def _fixed_cards() -> dict[str, Card]:
    return {name: _entry(name).card for name in MODULES}


def card(name: str, store: WeightStore | None = None) -> Card:
    """Return the card of one expert; raise a WordreelError if there is no such expert."""
    known = _fixed_cards().get(name) or cards(store).get(name)
    if known is None:
        raise WordreelError(f"there is no expert named {name!r}", NextStep("list all experts", "experts"))
    return known


def default_names() -> list[str]:
    """Return the experts that `add` runs by default."""
    return [name for name, card in _fixed_cards().items() if card.default]


def sees_single_frames(name: str) -> bool:
    """Return whether an expert gives a row for each frame by itself, also of frames far apart.

    >>> sees_single_frames("clip"), sees_single_frames("motion")
    (True, False)
    """
    return name in ("appearance", "clip") or name not in MODULES


def is_current(name: str, have: str, wanted: str) -> bool:
    """Return whether a track of fingerprint `have` is as good as one of fingerprint `wanted`, or better."""
    if name == "clip":
        from wordreel.experts.clip import is_better

        if is_better(have, wanted):
            return True
    known = _fixed_cards().get(name)  # none of an expert that was imported
    return have == wanted or (known is not None and have in known.also)


def load(name: str, store: WeightStore | None = None) -> Expert:
    """Load an expert with its weights, checked.

    Args:
        name: The expert; `cards(store)` lists them.
        store: Where its weights are; the default store if None.

    Raises:
        WordreelError: There is no such expert.
        WeightsError: Its weights are missing or damaged.
    """
    weights = store or WeightStore()
    if name in MODULES:
        return _entry(name).load(weights)
    from wordreel.backbones.installed import open_backbone
    from wordreel.experts.network_experts import BackboneExpert

    return BackboneExpert(card(name, weights), open_backbone(weights, name))


def load_quick(name: str, store: WeightStore) -> Expert:
    """Load an expert for the quick pass: its cheaper variant, if it has one."""
    quick = _entry(name).load_quick if name in MODULES else None
    return load(name, store) if quick is None else quick(store)


def recogniser(name: str, store: WeightStore | None = None) -> Recogniser:
    """Load the classifier of one of the `RECOGNISING` experts, without its network."""
    found = _entry(name).recogniser if name in MODULES else None
    if found is None:
        card(name)  # says so if there is no such expert
        raise WordreelError(f"the expert {name!r} has no classes")
    return found(store or WeightStore())


def _entry(name: str) -> ExpertEntry:
    entry: ExpertEntry = import_module(f"wordreel.experts.{MODULES[name]}").EXPERTS[name]
    return entry
