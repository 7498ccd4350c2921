"""exp(β x) of a block, by the fastest vector code NumPy has on this machine.

For float32 on Linux with AVX-512, 2^(x · β log₂ e) costs half of exp(β x) and is no less exact; elsewhere
NumPy takes powers of two one by one, and exp is the faster of the two. Either way the error is that of the
rounded exponent: a relative error of 6e-8.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np

from wordreel.types import Array


def exponential(values: Array, beta: float, out: Array) -> None:
    """Put exp(β · values) into `out`, which may be `values`."""
    if out.dtype == np.float32 and _fast_powers_of_two():
        np.multiply(values, beta * math.log2(math.e), out=out, casting="same_kind")
        np.exp2(out, out=out)
    else:
        np.multiply(values, beta, out=out, casting="same_kind")
        np.exp(out, out=out)


@cache
def _fast_powers_of_two() -> bool:
    extensions = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return sys.platform == "linux" and not {"AVX512_SKX", "X86_V4"}.isdisjoint(extensions)
