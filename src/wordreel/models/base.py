"""What search asks of any joint embedding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track


class Model(Protocol):
    """Turns stored tracks and words into vectors of one space.

    `experts` names the rows of every embedding, in order; `fingerprint` changes whenever any vector would.
    """

    name: str
    experts: tuple[str, ...]
    dim: int

    @property
    def fingerprint(self) -> str: ...

    def embed(self, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
        """`vectors [clips, experts, dim]` and `available [clips, experts]` for clips of one video."""
        ...

    def queries(self, texts: Sequence[str]) -> list[QueryEmbedding]:
        """Each text to one vector and one weight per expert."""
        ...

    def explain(
        self, query: QueryEmbedding, tracks: Mapping[str, Track], clip: Clip
    ) -> dict[str, tuple[str, tuple[float, float] | None]]:
        """For each expert that speaks for this clip: what it recognised that fits the query, and when."""
        ...
