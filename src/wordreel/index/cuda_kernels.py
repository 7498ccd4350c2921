# mypy: ignore-errors
"""One query against all items in one pass over the memory of a GPU, for `cuda.DeviceItems`.

Written in the kernel language of Triton, which comes with torch where there is a GPU.
"""

from __future__ import annotations

from subprocess import CalledProcessError

try:
    import triton.language as tl
    from triton import jit

    READY = True
except ImportError:  # the file can be read without it, the kernel cannot be run
    READY, tl = False, None

    def jit(kernel):
        return kernel


@jit
def block_maxima(
    items,
    query,
    penalty,
    maxima,
    DIM: tl.constexpr,
    ROWS: tl.constexpr,
    DEEP: tl.constexpr,
    PENALTY: tl.constexpr,
):
    """`maxima[b]` is the largest ⟨query, item⟩ − penalty of the `ROWS` items of block b."""
    block = tl.program_id(0).to(tl.int64)
    rows = block * ROWS + tl.arange(0, ROWS)
    products = tl.zeros((ROWS, DEEP), tl.float32)
    for start in tl.static_range(0, DIM, DEEP):
        deep = start + tl.arange(0, DEEP)
        inside = deep < DIM
        part = tl.load(query + deep, mask=inside, other=0.0)
        tile = tl.load(items + rows[:, None] * DIM + deep[None, :], mask=inside[None, :], other=0.0)
        products += tile * part[None, :]
    scores = tl.sum(products, axis=1)
    if PENALTY:
        scores -= tl.load(penalty + rows)
    tl.store(maxima + block, tl.max(scores, axis=0))


def fill_maxima(items, query, penalty, maxima, rows) -> bool:
    """Fill `maxima [blocks of rows]` by the kernel; False if it cannot run here.

    Triton compiles it when it first runs, which needs a C compiler and the headers of Python.
    """
    global READY
    if not (READY and items.is_cuda and items.shape[1]):
        return False
    try:
        block_maxima[(len(maxima),)](
            items,
            query,
            items if penalty is None else penalty,
            maxima,
            DIM=items.shape[1],
            ROWS=rows,
            DEEP=128,
            PENALTY=penalty is not None,
            num_warps=4,
        )
    except (RuntimeError, OSError, CalledProcessError, ImportError):
        READY = False
    return READY
