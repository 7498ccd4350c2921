"""Class names from stored features: the last linear layer of a network, without the network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wordreel.experts.names import names
from wordreel.types import Float32, Labels, Track


@dataclass(frozen=True)
class Head:
    """`weight [classes, dim]` and `bias [classes]`: logits are linear in the pooled features."""

    names: tuple[str, ...]
    weight: Float32
    bias: Float32
    fingerprint: str  # of the expert whose tracks it reads

    def labels(self, track: Track) -> Labels:
        """One row of logits per row of the track."""
        return Labels(self.names, track.values @ self.weight.T + self.bias, track.times)


def read_head(path: Path, listed: str, fingerprint: str) -> Head:
    """A head from its file, with the class names of one of the lists in `experts/data`."""
    from safetensors.numpy import load_file

    head = load_file(str(path))
    return Head(names(listed), head["weight"], head["bias"], fingerprint)
