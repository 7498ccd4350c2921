"""Which experts there are. One module per expert; a module is imported only when its expert is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from wordreel.errors import WordreelError
from wordreel.experts.base import Card, Expert, Recogniser
from wordreel.weights.store import WeightStore

EMBEDDED = ("appearance", "motion", "sound", "speech", "ocr", "faces", "faces_arc", "shots")
"""Experts whose weights arrive inside packages of the registries (or that need none)."""

HUB = (
    "senet154",
    "resnext101_wsl",
    "i3d_paper",
    "s3d",
    "r2p1d34_ig65m",
    "densenet161_places365",
    "vggish",
    "vggface2_resnet50",
    "clip_b32",
    "clip_b16",
    "siglip_b16",
)
"""Experts of the papers whose weights live on a hub: a local file or a hub id must be given."""

RECOGNISING = ("appearance", "motion", "sound")
"""Experts that can name what a stored track of theirs shows."""


@cache
def cards() -> dict[str, Card]:
    """The card of every expert, by name."""
    return {name: _module(name).CARD for name in (*EMBEDDED, *HUB)}


def card(name: str) -> Card:
    """The card of one expert."""
    found = cards().get(name)
    if found is None:
        raise WordreelError(f"there is no expert named {name!r}; `wordreel experts` lists them all")
    return found


def default_names() -> list[str]:
    """The experts that look at media unless told otherwise."""
    return [name for name, found in cards().items() if found.default]


def load(name: str, store: WeightStore | None = None) -> Expert:
    """The expert itself, its weights checked and in memory."""
    card(name)
    expert: Expert = _module(name).load(store or WeightStore())
    return expert


def recogniser(name: str, store: WeightStore | None = None) -> Recogniser:
    """The part of an expert that names what its stored tracks show, without the network."""
    card(name)
    found: Recogniser = _module(name).recogniser(store or WeightStore())
    return found


def _module(name: str):  # type: ignore[no-untyped-def]
    return import_module(f"wordreel.experts.{name}")
