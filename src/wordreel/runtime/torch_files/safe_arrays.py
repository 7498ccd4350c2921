"""Rebuild NumPy arrays from the parts in a pickle, each part checked before NumPy sees it.

While a pickle runs, arrays and dtypes are placeholders of this file (`ArrayPlaceholder`, `Dtype`); `finish`
replaces them by real ones when it is done.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import UnsafePickle

DTYPE = re.compile(r"[<>|=]?([biufc?SUV])(\d{0,6})|[|]?O8?")
DEPTH = 200


class _Ndarray:
    """Stands for the type `numpy.ndarray`, which pickles name but never call."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        raise UnsafePickle("the pickle tries to change numpy.ndarray")


NDARRAY = _Ndarray()


class Dtype:
    """Stands for a `numpy.dtype` of plain numbers, fixed-size text, or objects."""

    __slots__ = ("code", "order")

    def __init__(self, code: str, align: bool = False, copy: bool = True) -> None:
        if not isinstance(code, str) or not DTYPE.fullmatch(code):
            raise UnsafePickle(
                f"the pickle asks for the dtype {code!r:.60}; only plain numbers and text are read"
            )
        self.code = code.lstrip("<>|=")
        self.order = code[0] if code[0] in "<>" else "="

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise UnsafePickle(
                "the pickle asks for an array of records; only plain numbers and text are read"
            )
        self.order = state[1] if state[1] in ("<", ">") else "="

    def real(self) -> np.dtype[Any]:
        return np.dtype(self.code).newbyteorder(self.order)  # type: ignore[arg-type]


class ArrayPlaceholder:
    """Stands for an array whose content has not been given yet."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise UnsafePickle("the pickle holds an array of an unknown kind")
        shape, dtype, fortran, content = state[-4:]
        self.value = build(content, dtype, shape, "F" if fortran else "C")


def reconstruct(kind: object, shape: object, code: object) -> ArrayPlaceholder:
    """What `numpy._reconstruct` is: an empty array, to be filled by its state."""
    if kind is not NDARRAY:
        raise UnsafePickle("the pickle holds a subclass of an array; only plain arrays are read")
    return ArrayPlaceholder()


def scalar(dtype: Dtype, content: Any) -> Any:
    """What `numpy.scalar` is: one value of a dtype."""
    return build(content, dtype, (), "C")[()]


def from_buffer(content: Any, dtype: Dtype, shape: Any, order: str) -> ArrayPlaceholder:
    """What `numpy._frombuffer` is: an array over bytes."""
    rebuilt = ArrayPlaceholder()
    rebuilt.value = build(content, dtype, shape, order)
    return rebuilt


def build(content: Any, dtype: object, shape: Any, order: str) -> NDArray[Any]:
    """An array of exactly the content given: sizes that do not agree are refused."""
    if not isinstance(dtype, Dtype):
        raise UnsafePickle("the pickle holds an array without a dtype")
    shape = checked_shape(shape)
    count = math.prod(shape)
    kind = dtype.real()
    if kind.hasobject:
        if not isinstance(content, list) or len(content) != count:
            raise UnsafePickle(
                "the pickle holds an array of objects whose size does not agree with its content"
            )
        objects: NDArray[Any] = np.empty(count, dtype=object)
        for number, item in enumerate(content):
            objects[number] = item
        return objects.reshape(shape, order="F" if order == "F" else "C")
    data = as_bytes(content)
    if len(data) != count * kind.itemsize:
        raise UnsafePickle("the pickle holds an array whose size does not agree with its content")
    if count == 0 or kind.itemsize == 0:
        return np.zeros(shape, kind) if count == 0 else np.empty(shape, kind)
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if order == "F" else "C")


def checked_shape(shape: Any) -> tuple[int, ...]:
    """A shape that NumPy accepts."""
    if not isinstance(shape, tuple) or len(shape) > 32:
        raise UnsafePickle("the pickle holds an array with an impossible shape")
    if not all(isinstance(size, int) and 0 <= size < 2**40 for size in shape):
        raise UnsafePickle("the pickle holds an array with an impossible shape")
    return tuple(int(size) for size in shape)


def as_bytes(content: Any) -> bytes:
    """Bytes, or the text old pickles keep bytes in."""
    if isinstance(content, str):
        try:
            return content.encode("latin1")
        except UnicodeEncodeError:
            raise UnsafePickle("the pickle keeps bytes as text that is not latin1") from None
    if not isinstance(content, bytes | bytearray):
        raise UnsafePickle("the pickle holds an array whose content is not bytes")
    return bytes(content)


def finish(value: Any, depth: int = 0, done: dict[int, Any] | None = None) -> Any:
    """Replace stand-ins by what they stand for, through all containers.

    `done` keeps one result per object, so that sharing stays sharing and costs linear time.
    """
    done = {} if done is None else done
    if isinstance(value, str | bytes | int | float | None):
        return value
    if depth > DEPTH:
        raise UnsafePickle("the pickle nests deeper than any weight file does")
    if id(value) in done:
        return done[id(value)]
    rebuilt = _finish_one(value, depth + 1, done)
    done[id(value)] = rebuilt
    return rebuilt


def _finish_one(value: Any, depth: int, done: dict[int, Any]) -> Any:
    if isinstance(value, dict):
        filled: dict[Any, Any] = OrderedDict() if isinstance(value, OrderedDict) else {}
        done[id(value)] = filled
        filled.update((key, finish(item, depth, done)) for key, item in value.items())
        return filled
    if isinstance(value, list):
        items: list[Any] = []
        done[id(value)] = items
        items.extend(finish(item, depth, done) for item in value)
        return items
    if isinstance(value, tuple):
        return tuple(finish(item, depth, done) for item in value)
    if isinstance(value, ArrayPlaceholder):
        if value.value is None:
            raise UnsafePickle("the pickle holds an array without content")
        return _finish_array(value.value, depth, done)
    if isinstance(value, Dtype):
        return value.real()
    if hasattr(value, "finish_with"):  # stand-ins that hold values of their own
        return value.finish_with(lambda item: finish(item, depth, done), done)
    if hasattr(value, "finish"):  # stand-ins of other file formats
        return value.finish()
    if isinstance(value, np.generic | complex | bytearray):
        return value
    raise UnsafePickle(f"the pickle holds {value!r:.60}, which is neither an array nor a plain container")


def _finish_array(array: NDArray[Any], depth: int, done: dict[int, Any]) -> NDArray[Any]:
    if not array.dtype.hasobject:
        return array
    rebuilt = np.empty_like(array)
    for index, item in zip(np.ndindex(array.shape), array.flat, strict=True):
        rebuilt[index] = finish(item, depth, done)
    return rebuilt
