"""4-bit product quantisation of a group's items: shapes, training, codes in the order of FAISS's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index.groups import FullVectors
from wordreel.index.pq_reduction import BITS, Reduction, fit_reduction
from wordreel.types import Float32, Int64

SUBSPACES = ((256, 1), (1_024, 2))  # dimensions to a code at least, for items of at most so many; ...
WIDEST = 4  # ... and beyond
SAMPLE = 16_384  # items that a quantiser is trained on
CHUNK = 16_384  # items encoded at once; a multiple of LANES
LANES = 32  # items whose codes the kernels interleave
# Where the kernels want the 32 items of a lane: the low halves of both bytes first, interleaved.
_ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


def most_codes(full: FullVectors) -> int:
    """The codes that an item of the group may have, an even number."""
    width = next((width for most, width in SUBSPACES if full.dim <= most), WIDEST)
    return -(-full.dim // (2 * width)) * 2


@dataclass(frozen=True, eq=False)
class Quantiser:
    """What is kept of items, and the FAISS quantisers of it: coarse codes, and codes of what they leave."""

    reduction: Reduction
    coarse: Any
    fine: Any | None

    @classmethod
    def train(cls, full: FullVectors, queries: Float32 | None, rows: int) -> Quantiser:
        """From a sample of items of `rows` experts, and queries for them."""
        chosen = np.random.default_rng(0).permutation(len(full))[:SAMPLE]
        items = full.take(np.sort(chosen))
        reduction = fit_reduction(items, queries, rows, most_codes(full))
        reduced = reduction.items(items)
        coarse = _trained(reduced, reduction.coarse)
        if reduction.codes == reduction.coarse:
            return cls(reduction, coarse, None)
        left = reduction.remainder(reduced, coarse.decode(coarse.compute_codes(reduced)))
        return cls(reduction, coarse, _trained(left, reduction.codes - reduction.coarse))

    @property
    def centroids(self) -> Float32:
        """`[codes, 16, WIDTH]`, flat."""
        parts = [self.coarse] if self.fine is None else [self.coarse, self.fine]
        arrays = [load_faiss().vector_to_array(part.centroids) for part in parts]
        return np.concatenate(arrays).astype(np.float32)

    def encode(self, full: FullVectors, start: int) -> NDArray[np.uint8]:
        """Interleaved codes of the `CHUNK` items from `start`."""
        items = self.reduction.items(full.take(slice(start, start + CHUNK)))
        codes = self.coarse.compute_codes(items)
        if self.fine is not None:
            left = self.reduction.remainder(items, self.coarse.decode(codes))
            codes = np.concatenate([codes, self.fine.compute_codes(left)], axis=1)
        return interleave(codes)


def _trained(items: Float32, codes: int) -> Any:
    quantiser = load_faiss().ProductQuantizer(items.shape[1], codes, BITS)
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(items)
    return quantiser


def interleave(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes `[n, bytes]`, two to a byte, as the kernels read them: `[lanes, bytes, 32]`, filled with 0."""
    lanes = -(-len(codes) // LANES)
    whole = np.zeros((lanes * LANES, codes.shape[1]), np.uint8)
    whole[: len(codes)] = codes
    by_byte = whole.reshape(lanes, LANES, -1).transpose(0, 2, 1)
    first, second = by_byte & 15, by_byte >> 4
    halves = [part[:, :, _ORDER] | (part[:, :, _ORDER + 16] << 4) for part in (first, second)]
    return np.concatenate(halves, axis=2)


def scores_of(full: FullVectors, query: Float32, places: Int64) -> Float32:
    """Inner products of a query `[dim]` and some items, without a copy of them."""
    faiss, flat = load_faiss(), full.flat
    wide = query
    if full.columns is not None:
        wide = np.zeros(flat.shape[1], np.float32)
        wide[full.columns] = query
    rows, scores = np.ascontiguousarray(full.rows[places]), np.empty(len(places), np.float32)
    pointers = [faiss.swig_ptr(array) for array in (scores, np.ascontiguousarray(wide), flat, rows)]
    faiss.fvec_inner_products_by_idx(*pointers, flat.shape[1], 1, len(rows))
    return scores


def load_faiss() -> Any:
    """The module, an optional extra."""
    import faiss

    return faiss
