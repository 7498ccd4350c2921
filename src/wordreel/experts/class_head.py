"""Classify stored features: the last linear layer of a network, without the network, and class names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from wordreel.types import Float32, Labels, Track


@dataclass(frozen=True)
class ClassHead:
    """`weight [classes, dim]` and `bias [classes]`: logits are linear in the pooled features."""

    names: tuple[str, ...]
    weight: Float32
    bias: Float32
    fingerprint: str  # of the expert whose tracks it reads

    def labels(self, track: Track) -> Labels:
        """One row of logits per row of the track."""
        return Labels(self.names, track.values @ self.weight.T + self.bias, track.times)


def read_head(path: Path, names_file: str, fingerprint: str) -> ClassHead:
    """Read a head from its file, with the class names of a file in `experts/data`."""
    from safetensors.numpy import load_file

    head = load_file(str(path))
    return ClassHead(class_names(names_file), head["weight"], head["bias"], fingerprint)


@cache
def class_names(file: str) -> tuple[str, ...]:
    """The class names in a file of `experts/data`, one a line in output order; # starts a comment.

    >>> class_names("kinetics400.txt")[:2]
    ('abseiling', 'air drumming')
    """
    text = (files("wordreel.experts") / "data" / file).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))
