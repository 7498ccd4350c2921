"""CLIP-like models by name: where they are published, how large they are, and how fast.

To add one, append a `NamedBackbone` whose hub id you have verified. An empty `revision` is the newest commit;
the commit that was downloaded is recorded either way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Speed = Literal["fast", "medium", "slow"]


@dataclass(frozen=True)
class NamedBackbone:
    """One model. `megabytes` are to download; `speed` is that of the image tower on a CPU: with two cores,
    fast ones see more than ten frames a second, slow ones less than two."""

    name: str
    title: str
    hub: str
    megabytes: float
    licence: str
    speed: Speed
    revision: str = ""


RECOMMENDED = "clip-vit-b-32"

_TABLE = (
    NamedBackbone("clip-vit-b-32", "CLIP ViT-B/32", "openai/clip-vit-base-patch32", 605, "MIT", "fast"),
)

NAMED: Mapping[str, NamedBackbone] = {entry.name: entry for entry in _TABLE}
