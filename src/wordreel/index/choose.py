"""Which index a library of some size is searched with.

A scan of float32 vectors reads some 8 GB a second: up to `EXACT_BYTES` it answers in about 30 ms and needs no
files. Above, an index is built beside the embeddings (`cached`): 8-bit codes, exact all the same, up to
`INT8_BYTES`, and the 4-bit codes of FAISS with re-ranking beyond, where it is installed: they take a
quarter of the memory of 8-bit codes.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from wordreel.index.base import IndexBuilder
from wordreel.types import Float32

EXACT_BYTES = 256 * 2**20
INT8_BYTES = 512 * 2**20
LARGER: tuple[tuple[float, str], ...] = (
    (INT8_BYTES if find_spec("faiss") else float("inf"), "wordreel.index.int8"),
    (float("inf"), "wordreel.index.fastscan"),
)
"""Back ends with files, each with the bytes of vectors up to which it is chosen and the module of its
`BUILDER`."""


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
