"""Check that a checkpoint is the published one: every key and every shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import WeightsError

Array = NDArray[Any]
Shape = tuple[int, ...]
COUNTER = "num_batches_tracked"  # of training only
WRAPPER = "module."  # put before every key by networks trained on several devices


def unwrapped(state: Mapping[str, Array]) -> dict[str, Array]:
    """The state without the wrapper's prefix and without counters that only training uses.

    >>> import numpy as np
    >>> list(unwrapped({"module.fc.weight": np.zeros(1), "module.bn.num_batches_tracked": np.zeros(1)}))
    ['fc.weight']
    """
    wrapped = bool(state) and all(key.startswith(WRAPPER) for key in state)
    start = len(WRAPPER) if wrapped else 0
    return {key[start:]: value for key, value in state.items() if not key.endswith(COUNTER)}


def check(
    state: Mapping[str, Array],
    shapes: Mapping[str, Shape],
    heads: Mapping[str, Shape],
    *,
    ignore: tuple[str, ...] = (),
    given: str,
    expected: str,
) -> None:
    """Raise for the first key that is missing, of another shape, or not the network's.

    A classifier under one of the names in `heads` may have any number of classes or be absent; keys that
    begin with one of `ignore` belong to parts of the file that are not used.
    """
    for key, shape in shapes.items():
        if key not in state:
            first = ", ".join(sorted(state)[:3]) or "nothing"
            raise WeightsError(f"{given} is not {expected}: it has no {key} (it has {first}, …)")
        value = state[key]
        if value.shape != shape:
            actual = _shape_text(value.shape)
            raise WeightsError(
                f"{given} is not {expected}: {key} has the shape {actual}, not {_shape_text(shape)}"
            )
        if value.dtype.kind != "f":
            raise WeightsError(f"{given} is not {expected}: {key} holds {value.dtype} numbers, not floats")
        if not np.isfinite(value).all():
            raise WeightsError(f"{given} is damaged: {key} holds numbers that are not finite")
    for key in state:
        if key in heads and state[key].shape[1:] != heads[key][1:]:
            rest = "×".join(map(str, ("any", *heads[key][1:])))
            raise WeightsError(
                f"{given} is not {expected}: {key} has the shape {_shape_text(state[key].shape)}, not {rest}"
            )
        if key not in shapes and key not in heads and not key.startswith(ignore or ("\0",)):
            raise WeightsError(f"{given} is not {expected}: it has {key}, which that network does not have")


def _shape_text(shape: Shape) -> str:
    return "×".join(map(str, shape)) or "one number"
