"""Compressed scan with exact re-ranking: 4-bit product quantisation with the fast-scan kernels of FAISS.

Each group of items (one pattern of available experts) has one product quantiser: every one, two or four
dimensions become one of 16 centroids, so an item of 512 dimensions is 128 bytes. A search scans the codes for
candidates and scores those from the full vectors, as many as it needs (`pq_items`); its scores are exact, and
a few of the best may be missing: recall is measured (`index.recall`). Groups of few items have 8-bit codes
(`int8`) instead.

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
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from wordreel.index import int8
from wordreel.index.base import Index, QuerySample
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupedIndex,
    GroupItems,
    map_file,
    read_groups,
    write_groups,
)
from wordreel.index.pq_codes import CHUNK, LANES, Quantiser, code_shape, encode, load_faiss, train
from wordreel.index.pq_items import PqItems, shard_pool
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32

FEW = 16_384  # items of a group that are searched by their 8-bit codes
CODES, CENTROIDS, LAYOUT = "pq.bin", "centroids.bin", "quantisers.json"


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
        with (folder / CODES).open("wb") as codes, (folder / CENTROIDS).open("wb") as centroids:
            for _, full in read_groups(folder, vectors):
                if not _compressed(full):
                    continue
                quantiser = shard_pool().submit(train, full).result()
                load_faiss().vector_to_array(quantiser.centroids).astype(np.float32).tofile(centroids)
                layout.append({"subspaces": quantiser.M, "dim": quantiser.d})
                starts = range(0, len(full), CHUNK)
                for part in shard_pool().map(partial(encode, full, quantiser), starts):
                    part.tofile(codes)
                    done += CHUNK
                    if on_progress is not None:
                        on_progress(Progress("compressing items", min(done, len(vectors)), len(vectors)))
        (folder / LAYOUT).write_text(json.dumps(layout))
        int8.write_codes(folder, [full for _, full in read_groups(folder, vectors) if _small(full)])

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        layout = [Quantiser.of(entry) for entry in json.loads((folder / LAYOUT).read_text())]
        large = [full for _, full in read if _compressed(full)]
        if [entry.dim for entry in layout] != [code_shape(full)[1] for full in large]:
            raise ValueError(f"{folder / LAYOUT} is of other items")
        lanes = [-(-len(full) // LANES) for full in large]
        sizes = [count * LANES * entry.subspaces // 2 for count, entry in zip(lanes, layout, strict=True)]
        codes = map_file(folder / CODES, np.uint8, (sum(sizes),))
        centroids = map_file(folder / CENTROIDS, np.float32, (16 * sum(entry.dim for entry in layout),))
        small = iter(int8.open_codes(folder, [full for _, full in read if _small(full)]))
        groups: list[Group] = []
        code = centroid = 0
        for pattern, full in read:
            items: GroupItems = next(small) if _small(full) else DirectItems(full)
            if _compressed(full):
                entry, count, size = layout.pop(0), lanes.pop(0), sizes.pop(0)
                own = codes[code : code + size].reshape(count, entry.subspaces // 2, LANES)
                items = PqItems(full, own, centroids[centroid : centroid + 16 * entry.dim])
                code, centroid = code + size, centroid + 16 * entry.dim
            groups.append(Group(pattern, full, items))
        return GroupedIndex(self.name, vectors, available, groups, exact=False)


BUILDER = _Builder()


def _compressed(full: FullVectors) -> bool:
    return len(full) > FEW and full.dim > 0


def _small(full: FullVectors) -> bool:
    return int8.has_codes(full) and not _compressed(full)
