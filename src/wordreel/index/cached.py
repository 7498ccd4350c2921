"""Indexes with files: built into a folder beside the embeddings, opened from it, built again if damaged.

    index/<name>-<generation>-<rows>/    what the builder wrote
    index/manifest.json                  which of them is valid, replaced last

An index holds the first rows of one generation of the embeddings, which never change; rows added since are
searched exactly (`PartedIndex`), and too many of them are a reason to build again. Deleted rows are not
allowed in a search. A cache: never trusted where its sizes or its embeddings differ from the manifest.

A scan of float32 vectors reads some 8 GB a second: up to `EXACT_BYTES` it answers in about 30 ms and needs no
files. Above, 8-bit codes are built, exact all the same, up to `INT8_BYTES`, and beyond them the 4-bit codes
of FAISS with re-ranking, where it is installed: they take a quarter of the memory. How many of the true best
items those return is measured, so that it can be stated.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from wordreel.index.base import Correction, Index, IndexBuilder, PartedIndex, QuerySample
from wordreel.index.exact import ExactIndex
from wordreel.progress import ProgressCallback
from wordreel.types import Bool, Float32
from wordreel.util.atomic import atomic_write, make_dir, sync_dir, sync_file
from wordreel.util.checksum import write_checksums

# What reading a damaged file may raise:
DAMAGE = (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError)
VERSION = 3
K = 10  # of a measured recall
TAIL = 0.05  # share of rows that are not in the index at which it is built again
EXACT_BYTES = 256 * 2**20
INT8_BYTES = 512 * 2**20
LARGER: tuple[tuple[float, str], ...] = (
    (INT8_BYTES if find_spec("faiss") else float("inf"), "wordreel.index.int8"),
    (float("inf"), "wordreel.index.fastscan"),
)
"""Back ends with files, each with the bytes of vectors up to which it is chosen and the module of its
`BUILDER`."""


@dataclass(frozen=True)
class MeasuredRecall:
    """The share of the exact `k` best that an index returned, over so many queries."""

    value: float
    queries: int
    k: int = K

    def __str__(self) -> str:
        return f"recall@{self.k} {self.value:.3f} on {self.queries} queries"


@dataclass(frozen=True)
class BuiltIndex:
    """Describe an index on disk.

    The rows that it holds, the sizes of its files, and its measured recall by kind of query ("text",
    "look-alike"), none where it is exact.
    """

    version: int
    name: str
    generation: int
    rows: int
    folder: str
    sizes: dict[str, int]
    recall: dict[str, MeasuredRecall] = field(default_factory=dict)


@dataclass(frozen=True)
class IndexCache:
    """The index of one generation of a model's embeddings."""

    folder: Path
    generation: int

    def read(self, name: str) -> BuiltIndex | None:
        """Read what the manifest says of an index of this back end; None if there is none that is whole."""
        try:
            raw = json.loads((self.folder / "manifest.json").read_bytes())
            recall = {kind: MeasuredRecall(**values) for kind, values in raw.pop("recall").items()}
            built = BuiltIndex(**raw, recall=recall)
            fits = (built.version, built.name, built.generation) == (VERSION, name, self.generation)
            whole = _sizes(self.folder / built.folder) == built.sizes
            return built if fits and whole else None
        except DAMAGE:
            return None

    def open(self, builder: IndexBuilder, vectors: Float32, available: Bool) -> Index | None:
        """Open the index, and search the rows that it does not hold exactly; None if it must be built."""
        built = self.read(builder.name)
        if built is None or not 0 < built.rows <= len(vectors):
            return None
        head, tail = slice(built.rows), slice(built.rows, None)
        try:
            index = builder.open(self.folder / built.folder, vectors[head], available[head])
        except DAMAGE:
            return None
        if built.rows == len(vectors):
            return index
        return PartedIndex([index, ExactIndex(vectors[tail], available[tail])])

    def stale(self, builder: IndexBuilder, rows: int) -> bool:
        """Return whether the index is missing, damaged, or holds too few of so many rows."""
        built = self.read(builder.name)
        return built is None or rows - built.rows > TAIL * rows

    def build(
        self,
        builder: IndexBuilder,
        vectors: Float32,
        available: Bool,
        on_progress: ProgressCallback | None = None,
    ) -> BuiltIndex:
        """Build the index of all rows; readers use the old one until this is complete."""
        make_dir(self.folder)
        name = f"{builder.name}-{self.generation}-{len(vectors)}"
        fresh = self.folder / f"{name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        builder.build(fresh, vectors, available, on_progress)
        write_checksums(fresh)  # for `verify`: reading all of it here again would make opening slow
        for path in fresh.rglob("*"):
            sync_file(path)
        sync_dir(fresh)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        fresh.rename(self.folder / name)
        sizes = _sizes(self.folder / name)
        built = BuiltIndex(VERSION, builder.name, self.generation, len(vectors), name, sizes)
        self._commit(built)
        for path in self.folder.iterdir():
            if path.is_dir() and path.name != name:
                shutil.rmtree(path, ignore_errors=True)
        return built

    def state_recall(self, built: BuiltIndex, recall: dict[str, MeasuredRecall]) -> None:
        """Save what was measured with the index."""
        self._commit(BuiltIndex(**{**built.__dict__, "recall": recall}))

    def _commit(self, built: BuiltIndex) -> None:
        atomic_write(self.folder / "manifest.json", json.dumps(asdict(built)).encode())


def _sizes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()
    }


def builder_for(vectors: Float32) -> IndexBuilder | None:
    """Return the back end for `vectors [n, experts, dim]`; None for the exact scan.

    >>> import numpy as np
    >>> builder_for(np.zeros((10, 1, 4), np.float32)) is None
    True
    """
    size = vectors.size * vectors.itemsize
    if size <= EXACT_BYTES:
        return None
    for limit, module in LARGER:
        if size <= limit:
            builder: IndexBuilder = import_module(module).BUILDER
            return builder
    return None


def measure_recall(
    index: Index,
    exact: Index,
    queries: QuerySample,
    allowed: Bool | None = None,
    correction: Correction | None = None,
    k: int = K,
) -> MeasuredRecall:
    """Compare an index with an exact one over the same rows; cost: one exact search of all queries."""
    true = exact.search(queries.vectors, queries.weights, k, allowed, correction).rows
    found = index.search(queries.vectors, queries.weights, k, allowed, correction).rows
    shares = [
        len(set(want[want >= 0].tolist()) & set(got.tolist())) / max(1, int((want >= 0).sum()))
        for want, got in zip(true, found, strict=True)
    ]
    return MeasuredRecall(float(np.mean(shares)), len(shares), k)
