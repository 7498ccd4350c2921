"""`VectorServer`: what an index asks of PostgreSQL or Milvus, and what it stores there.

A server row is a clip: its id, the pattern of its available experts, a digest of its vector, and the vector
with `SLOTS` more dimensions, `[v, −b₁, …, −b₄]`. A query `[q, 0, …, 0]` ranks by similarity alone; a 1 in
place of the i-th of the last zeros subtracts the i-th bias, so one stored vector serves plain search and up
to four normalisations. Biases that are not known yet are stored as 0 and remembered as unknown (NaN in
`biases`).

A `Marker` beside the rows says whether they are complete and names the normalisation in each slot by a
stamp. It changes before the rows do: whoever reads it after a search, and finds the stamp that he expects,
knows that the search saw the biases that he expects.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b, sha256
from typing import Protocol

import numpy as np

from wordreel.errors import IndexServerError
from wordreel.types import Bool, Float32, Int64

SLOTS = 4
VERSION = 1


@dataclass(frozen=True)
class Layout:
    """Whose vectors a table holds: `name` is unique to a library and a model."""

    name: str
    experts: int
    dim: int

    @classmethod
    def of(cls, library: str, fingerprint: str, experts: int, dim: int) -> Layout:
        digest = sha256(f"{library}\0{fingerprint}".encode()).hexdigest()[:20]
        return cls(f"wordreel_{digest}", experts, dim)


@dataclass(frozen=True)
class Marker:
    """The state of a table. A stamp is "" while a slot holds nothing."""

    epoch: str  # of the table: another one if it was created again
    complete: bool = False
    clips: str = ""  # a digest of the ids that are there, when complete
    stamps: tuple[str, ...] = ("",) * SLOTS
    version: int = VERSION

    @classmethod
    def new(cls) -> Marker:
        return cls(_stamp())

    def with_stamp(self, slot: int) -> Marker:
        """Return this marker with a new stamp, so that nobody takes what is in the slot for what was."""
        return replace(self, stamps=(*self.stamps[:slot], _stamp(), *self.stamps[slot + 1 :]))

    def oldest_slot(self) -> int:
        """Return a slot that holds nothing, or the one that was stamped first."""
        return min(range(SLOTS), key=lambda slot: self.stamps[slot])

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Marker:
        try:
            raw = json.loads(text)
            stamps = tuple(str(stamp) for stamp in raw["stamps"])
            if raw["version"] != VERSION or len(stamps) != SLOTS:
                raise ValueError(raw["version"])
            return cls(str(raw["epoch"]), bool(raw["complete"]), str(raw["clips"]), stamps)
        except (ValueError, KeyError, TypeError):
            raise IndexServerError(
                "the index on the server was written by another version of wordreel"
            ) from None


@dataclass(frozen=True, eq=False)
class ServerRows:
    """What is on the server: `clips [n]`, `digests [n]` and `biases [n, SLOTS]`, NaN where not known."""

    clips: Int64
    digests: Int64
    biases: Float32


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of one pattern to write: `vectors [n, present experts · dim]`, without the absent experts."""

    pattern: Bool  # [experts]
    clips: Int64
    digests: Int64
    biases: Float32  # [n, SLOTS]
    vectors: Float32

    def extended(self) -> Float32:
        """Append minus their biases to the vectors: `[n, present experts · dim + SLOTS]`."""
        return np.concatenate([self.vectors, -np.nan_to_num(self.biases)], axis=1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """A search among the clips of one pattern whose ids are in `ranges [r, 2]`, both ends included."""

    pattern: Bool
    query: Float32  # [present experts · dim + SLOTS]
    ranges: Int64
    share: float  # of the pattern's clips that are in the ranges
    k: int


class VectorServer(Protocol):
    """One table of vectors on a server; threads may share it. All calls may raise `IndexServerError`."""

    name: str  # of the engine
    exact: bool
    max_k: int

    def prepare(self) -> None:
        """Create the table if there is none."""
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Keep other writers of the same table out, where the engine can."""
        ...

    def read_marker(self) -> Marker | None: ...
    def write_marker(self, marker: Marker) -> None: ...
    def rows(self) -> ServerRows: ...
    def begin(self, rows: int) -> None:
        """Make ready for so many rows to be put; searches stay possible."""
        ...

    def put(self, rows: NewRows) -> None:
        """Add rows, or replace those with the same clips; all of them or none."""
        ...

    def delete(self, clips: Int64) -> None: ...
    def finish(self) -> None:
        """Build what approximate search needs, and wait until searches see what was written."""
        ...

    def search(self, groups: Sequence[GroupSearch]) -> tuple[list[Int64], Marker | None]:
        """Return the best clips of each group, best first, and the marker during the searches or after."""
        ...

    def describe(self) -> str:
        """Return the engine and its version, for people."""
        ...

    def drop(self) -> None:
        """Delete the table and its marker."""
        ...

    def close(self) -> None: ...


def pattern_code(pattern: Bool) -> int:
    """Return a pattern of available experts as a whole number.

    >>> pattern_code(np.array([True, False, True]))
    5
    """
    return sum(1 << place for place, present in enumerate(pattern.tolist()) if present)


def digests_of(vectors: Float32) -> Int64:
    """Return a 64-bit digest of each row's bytes."""
    rows = np.ascontiguousarray(vectors, "<f4").reshape(len(vectors), -1)
    return np.array(
        [
            int.from_bytes(blake2b(row.tobytes(), digest_size=8).digest(), "little", signed=True)
            for row in rows
        ],
        np.int64,
    )


def _stamp() -> str:
    """Return a stamp that is unique, and later than those before."""
    return f"{time.time_ns():020d}-{secrets.token_hex(4)}"
