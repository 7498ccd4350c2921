"""Compressed scan with exact re-ranking: 4-bit product quantisation with the fast-scan kernels of FAISS.

Each group of items (one pattern of available experts) has one product quantiser. Its codes, four bits each,
are of the directions that tell scores apart (`pq_reduction`): some 145 bytes for an item of the default
model, at most 128 for one of 512 dimensions. A search scans the codes for candidates and scores those from
the full vectors, as many as it needs (`pq_items`); its scores are exact, and a few of the best may be
missing: recall is measured (`index.recall`). Groups of few items have 8-bit codes (`int8`) instead.

Corrections are folded in: eight more codes per item hold its bias in 121 levels, as coordinates that the
query multiplies by the size of a level, or by 0 for a plain search. So one set of codes answers both. Another
bias replaces those four bytes of each item; the rest stays as it is.

Filters leave out candidates after the scan, which therefore fetches more of them, and deeper if too few
remain; what a deep scan would not find is scored directly.

The files hold plain arrays, not FAISS's own format, which is no safe input: any bytes of the right length are
valid codes. FAISS is an optional extra.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index import int8
from wordreel.index.base import Index, QuerySample
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupedIndex,
    GroupItems,
    map_file,
    own_queries,
    read_groups,
    write_groups,
)
from wordreel.index.pq_codes import CHUNK, LANES, Quantiser
from wordreel.index.pq_items import PqItems, shard_pool
from wordreel.index.pq_reduction import WIDTH, Reduction
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32

FEW = 2_048  # items of a group that are searched by their 8-bit codes
CODES, CENTROIDS, MAPS, LAYOUT = "pq.bin", "centroids.bin", "maps.bin", "quantisers.json"


@dataclass(frozen=True)
class _Builder:
    """`IndexBuilder` of compressed search."""

    name: str = "pq"

    def build(
        self,
        folder: Path,
        vectors: Float32,
        available: Bool,
        queries: QuerySample | None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        write_groups(folder, available)
        done, layout = 0, []
        with ExitStack() as opened:
            codes, centroids, maps = (
                opened.enter_context((folder / name).open("wb")) for name in (CODES, CENTROIDS, MAPS)
            )
            for pattern, full in read_groups(folder, vectors):
                if not _compressed(full):
                    continue
                asked = None if queries is None else own_queries(queries, pattern, full)
                rows = int(pattern.sum())
                quantiser = shard_pool().submit(Quantiser.train, full, asked, rows).result()
                quantiser.centroids.tofile(centroids)
                quantiser.reduction.numbers().tofile(maps)
                layout.append(quantiser.reduction.layout())
                starts = range(0, len(full), CHUNK)
                for part in shard_pool().map(partial(quantiser.encode, full), starts):
                    part.tofile(codes)
                    done += CHUNK
                    if on_progress is not None:
                        on_progress(Progress("compressing items", min(done, len(vectors)), len(vectors)))
        (folder / LAYOUT).write_text(json.dumps(layout))
        int8.write_codes(folder, [full for _, full in read_groups(folder, vectors) if _small(full)])

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        layout, dim = json.loads((folder / LAYOUT).read_text()), vectors.shape[2]
        large = [(pattern, full) for pattern, full in read if _compressed(full)]
        if [len(entry["places"]) for entry in layout] != [int(pattern.sum()) for pattern, _ in large]:
            raise ValueError(f"{folder / LAYOUT} is of other items")
        lanes = [-(-len(full) // LANES) for _, full in large]
        counts = [int(entry["codes"]) for entry in layout]
        code_sizes = [count * LANES * number // 2 for count, number in zip(lanes, counts, strict=True)]
        codes = _Parts(map_file(folder / CODES, np.uint8, (sum(code_sizes),)))
        centroids = _Parts(map_file(folder / CENTROIDS, np.float32, (16 * WIDTH * sum(counts),)))
        map_sizes = [Reduction.size(entry, dim) for entry in layout]
        maps = _Parts(map_file(folder / MAPS, np.float32, (sum(map_sizes),)))
        coded = iter(
            PqItems(
                full,
                codes.take(code_size).reshape(count, -1, LANES),
                centroids.take(16 * WIDTH * number),
                Reduction.read(entry, dim, maps.take(map_size)),
            )
            for (_, full), entry, count, number, code_size, map_size in zip(
                large, layout, lanes, counts, code_sizes, map_sizes, strict=True
            )
        )
        small = iter(int8.open_codes(folder, [full for _, full in read if _small(full)]))
        groups: list[Group] = []
        for pattern, full in read:
            items: GroupItems = DirectItems(full)
            if _compressed(full):
                items = next(coded)
            elif _small(full):
                items = next(small)
            groups.append(Group(pattern, full, items))
        return GroupedIndex(self.name, vectors, available, groups, exact=False)


BUILDER = _Builder()


class _Parts:
    """Consecutive parts of one array."""

    def __init__(self, whole: NDArray[Any]) -> None:
        self._whole, self._start = whole, 0

    def take(self, size: int) -> NDArray[Any]:
        self._start += size
        return self._whole[self._start - size : self._start]


def _compressed(full: FullVectors) -> bool:
    return len(full) > FEW and full.dim > 0


def _small(full: FullVectors) -> bool:
    return int8.has_codes(full) and not _compressed(full)
