"""One item's features as foreign files keep them, to a `Track` or to the reason why there is none.

A value is a vector `[dim]`, rows `[n, dim]`, or a list of either; 16, 32 or 64 bits or whole numbers. Missing
is NaN (one number, a first row or all of it), None, or an array without rows. A single row that is all NaN is
left out; a row with some values that are not finite is an error, for nothing says what was meant.

Times: few trees have any. A row whose time is unknown is at `(UNKNOWN, UNKNOWN)`, before the beginning, as
MMT keeps it: it counts for the whole video and for no moment of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import DatasetError
from wordreel.types import Absent, Bool, Float64, Track

UNKNOWN = -1.0
MAX_ROWS = 1_000_000
MAX_NUMBERS = 2**28

Array = NDArray[Any]


def as_track(value: Any, times: Array | None = None) -> Track | Absent:
    """The track of one value, `times [n, 2]` beside it where the tree has them.

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
    there: Bool = ~np.asarray(np.isnan(numbers).all(axis=1))
    if not there.any() or not there[0]:
        return Absent("NaN in the file")
    if not np.isfinite(numbers[there]).all():
        raise DatasetError("some values are not finite numbers")
    when = as_times(times, len(rows))
    return Track(np.ascontiguousarray(numbers[there]), when[there])


def as_rows(value: Any) -> Array | None:
    """`[n, dim]` of any number type; None for a lone NaN."""
    if isinstance(value, list | tuple):
        return _stacked(list(value))
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.ndim == 0):
        number = value.item() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(number, float) and np.isnan(number):
            return None
        raise DatasetError(f"one {type(number).__name__} where features are expected")
    if not isinstance(value, np.ndarray):
        raise DatasetError(f"a {type(value).__name__} where features are expected")
    return _array_rows(value)


def _array_rows(value: Array) -> Array | None:
    if value.dtype.hasobject:
        return _stacked(list(value))
    if value.dtype.kind not in "fiub":
        raise DatasetError(f"an array of {value.dtype} where numbers are expected")
    if value.ndim == 1:
        value = value[None] if value.size else value.reshape(0, 0)
    if value.ndim > 2:  # [n, 1, 1, dim]: what pooling layers leave
        if any(size != 1 for size in value.shape[1:-1]):
            raise DatasetError(f"features of shape {value.shape}; a row per moment is expected")
        value = value.reshape(len(value), value.shape[-1])
    if len(value) > MAX_ROWS:
        raise DatasetError(f"{len(value)} rows for one item; {MAX_ROWS} are allowed")
    return value


def as_times(times: Array | None, rows: int) -> Float64:
    """`[n, 2]` seconds; unknown where there is none, or where it is NaN, negative or backwards."""
    when = np.full((rows, 2), UNKNOWN)
    if times is None or times.dtype.kind not in "fiu" or times.ndim != 2 or times.shape[1] != 2:
        return when
    given = times[:rows].astype(np.float64)
    known = np.isfinite(given).all(axis=1) & (given[:, 0] >= 0) & (given[:, 1] >= given[:, 0])
    when[: len(given)][known] = given[known]
    return when


def steps(rows: int, seconds: float) -> Float64:
    """Times of rows that follow each other every so many seconds.

    >>> steps(2, 0.5).tolist()
    [[0.0, 0.5], [0.5, 1.0]]
    """
    starts = np.arange(rows) * seconds
    return np.stack([starts, starts + seconds], axis=1)


def _stacked(parts: list[Any]) -> Array | None:
    """Lists of rows to rows. Counted as it goes: a small pickle can name one large array a million times."""
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
        found = as_rows(part)
        if found is not None and found.size:
            rows.append(found)
            numbers += found.size
        if numbers > MAX_NUMBERS:
            break
    if numbers > MAX_NUMBERS:
        raise DatasetError(f"more than {MAX_NUMBERS} numbers for one item")
    if not rows:
        return None if parts else np.zeros((0, 0))
    if len({row.shape[1] for row in rows}) > 1:
        raise DatasetError(f"rows of different lengths: {sorted({row.shape[1] for row in rows})}")
    return np.concatenate(rows)
