"""Convert one item's features, as other systems store them, to a `Track` or an `Absent` with the reason.

A value is a vector `[dim]`, rows `[n, dim]`, or a list of either, of any float or integer type. Missing
features are NaN (one number, the first row or all rows), None, or an array without rows. A later row that is
all NaN is dropped; a row with some non-finite values is an error, because its meaning is unknown.

Few trees have times. A row without one is at `(UNKNOWN_TIME, UNKNOWN_TIME)`, before the start, as in MMT: it
counts for the whole video and for no moment in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wordreel.errors import DatasetError
from wordreel.types import Absent, Array, Bool, Float64, Track

UNKNOWN_TIME = -1.0
MAX_ROWS = 1_000_000
MAX_NUMBERS = 2**28


def as_track(value: Any, times: Array | None = None) -> Track | Absent:
    """Convert one value; `times [n, 2]` are its rows' times if the tree has them.

    >>> as_track(float("nan"))
    Absent(reason='NaN in the file')
    >>> as_track(np.array([1.0, 2.0])).times.tolist()
    [[-1.0, -1.0]]
    """
    if value is None:
        return Absent("no value in the file")
    rows = as_rows(value)
    if rows is None:
        return Absent("NaN in the file")
    if rows.size == 0:
        return Absent("an empty array in the file")
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = rows.astype(np.float32)
    present: Bool = ~np.asarray(np.isnan(numbers).all(axis=1))
    if not present.any() or not present[0]:
        return Absent("NaN in the file")
    if not np.isfinite(numbers[present]).all():
        raise DatasetError("some values are not finite numbers")
    return Track(np.ascontiguousarray(numbers[present]), as_times(times, len(rows))[present])


def as_rows(value: Any) -> Array | None:
    """Convert an array to rows `[n, dim]` of any number type; None for a lone NaN."""
    if isinstance(value, list | tuple):
        return _stacked(list(value))
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.ndim == 0):
        number = value.item() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(number, float) and np.isnan(number):
            return None
        raise DatasetError(f"a single {type(number).__name__}, not features")
    if not isinstance(value, np.ndarray):
        raise DatasetError(f"a {type(value).__name__}, not features")
    return _array_rows(value)


def _array_rows(value: Array) -> Array | None:
    if value.dtype.hasobject:
        return _stacked(list(value))
    if value.dtype.kind not in "fiub":
        raise DatasetError(f"an array of {value.dtype}, not of numbers")
    if value.ndim == 1:
        value = value[None] if value.size else value.reshape(0, 0)
    if value.ndim > 2:  # [n, 1, 1, dim]: what pooling layers leave
        if any(size != 1 for size in value.shape[1:-1]):
            raise DatasetError(f"features of shape {value.shape}, not [rows, dim]")
        value = value.reshape(len(value), value.shape[-1])
    if len(value) > MAX_ROWS:
        raise DatasetError(f"{len(value)} rows for one item; the limit is {MAX_ROWS}")
    return value


def as_times(times: Array | None, rows: int) -> Float64:
    """Convert times to `[n, 2]` seconds.

    They are unknown where a time is missing, NaN, negative or ends before it starts.
    """
    seconds = np.full((rows, 2), UNKNOWN_TIME)
    if times is None or times.dtype.kind not in "fiu" or times.ndim != 2 or times.shape[1] != 2:
        return seconds
    given = times[:rows].astype(np.float64)
    known = np.isfinite(given).all(axis=1) & (given[:, 0] >= 0) & (given[:, 1] >= given[:, 0])
    seconds[: len(given)][known] = given[known]
    return seconds


def regular_times(rows: int, seconds: float) -> Float64:
    """Return times of consecutive rows of this many seconds each.

    >>> regular_times(2, 0.5).tolist()
    [[0.0, 0.5], [0.5, 1.0]]
    """
    starts = np.arange(rows) * seconds
    return np.stack([starts, starts + seconds], axis=1)


def _stacked(parts: list[Any]) -> Array | None:
    """Concatenate rows. Sizes are checked in the loop: a small pickle can repeat one large array."""
    if all(isinstance(part, int | float | np.number) for part in parts):
        return np.asarray(parts, np.float64)[None] if parts else np.zeros((0, 0))
    rows: list[Array] = []
    numbers = 0
    for part in parts:
        if isinstance(part, list | tuple):
            numbers += len(part)
            if numbers > MAX_NUMBERS:
                break
            if not all(isinstance(x, int | float | np.number) for x in part):
                raise DatasetError("features nested deeper than a list of rows")
        converted = as_rows(part)
        if converted is not None and converted.size:
            rows.append(converted)
            numbers += converted.size
        if numbers > MAX_NUMBERS:
            break
    if numbers > MAX_NUMBERS:
        raise DatasetError(f"more than {MAX_NUMBERS} numbers for one item")
    if not rows:
        return None if parts else np.zeros((0, 0))
    if len({row.shape[1] for row in rows}) > 1:
        raise DatasetError(f"rows of different lengths: {sorted({row.shape[1] for row in rows})}")
    return np.concatenate(rows)
