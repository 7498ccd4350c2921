"""Read pickles of NumPy arrays and plain containers, and of nothing else.

A pickle is a program: it may import and call anything. Here its instructions are checked before any of them
runs, and it knows a short list of names only, each bound to a function of this file that checks its
arguments. While it runs, arrays and dtypes are placeholders; at the end real ones take their place.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, UnsafePickle

MAX_BYTES = 4 * 2**30
MAX_DEPTH = 200
DTYPE = re.compile(r"[<>|=]?([biufc?SUV])(\d{0,6})|[|]?O8?")
WEIGHTS_STEP = NextStep("ask for the weights in safetensors format, from a source you trust")
REFUSED = frozenset(
    "EXT1 EXT2 EXT4 EMPTY_SET ADDITEMS FROZENSET INST OBJ NEWOBJ NEWOBJ_EX NEXT_BUFFER READONLY_BUFFER "  # noqa: SIM905
    "PERSID BINPERSID".split()
)
PUTS, GETS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}, {"GET", "BINGET", "LONG_BINGET"}
INSTRUCTIONS = {instruction.code: instruction for instruction in pickletools.opcodes}
SLICE = (pickletools.markobject, pickletools.stackslice)  # of the stack, from the last mark on
TUPLES = {"EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}


class _Name:
    """A name that a pickle may use. It can be called, but not looked into or changed."""

    def __init__(self, label: str, function: Callable[..., Any]) -> None:
        self._label = label
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self._function(*arguments)
        except UnsafePickle:
            raise
        except Exception as error:
            raise UnsafePickle(f"the pickle misuses {self._label}: {error}") from None

    def __setstate__(self, state: object) -> None:
        raise UnsafePickle(f"the pickle tries to change {self._label}")

    def __repr__(self) -> str:
        return f"<{self._label}>"


class _Dtype:
    """Stands for a `numpy.dtype` of plain numbers, fixed-size text, or objects."""

    def __init__(self, code: str, align: bool = False, copy: bool = True) -> None:
        if not isinstance(code, str) or not DTYPE.fullmatch(code):
            raise UnsafePickle(
                f"the pickle asks for the dtype {code!r:.60}; only plain numbers and text are read"
            )
        self._code = code.lstrip("<>|=")
        self._order = code[0] if code[0] in "<>" else "="

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise UnsafePickle(
                "the pickle asks for an array of records; only plain numbers and text are read"
            )
        self._order = state[1] if state[1] in ("<", ">") else "="

    def real(self) -> np.dtype[Any]:
        return np.dtype(self._code).newbyteorder(self._order)  # type: ignore[arg-type]


class _Array:
    """Stands for an array, whose content may be given later."""

    def __init__(self, value: NDArray[Any] | None = None) -> None:
        self.value = value

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise UnsafePickle("the pickle holds an array of an unknown kind")
        shape, dtype, fortran, content = state[-4:]
        self.value = _build(content, dtype, shape, "F" if fortran else "C")


def _refuse_call(*arguments: object) -> None:
    raise UnsafePickle("the pickle tries to make an array directly")


_NDARRAY = _Name("numpy.ndarray", _refuse_call)  # pickles name it, but never call it


def _reconstruct(kind: object, shape: object, code: object) -> _Array:
    if kind is not _NDARRAY:
        raise UnsafePickle("the pickle holds a subclass of an array; only plain arrays are read")
    return _Array()


def _build(content: Any, dtype: object, shape: Any, order: str) -> NDArray[Any]:
    """Return an array of exactly the content given: sizes that do not agree are refused."""
    if not isinstance(dtype, _Dtype):
        raise UnsafePickle("the pickle holds an array without a dtype")
    whole = isinstance(shape, tuple) and len(shape) <= 32
    if not whole or not all(isinstance(size, int) and 0 <= size < 2**40 for size in shape):
        raise UnsafePickle("the pickle holds an array with an impossible shape")
    count, kind = math.prod(shape), dtype.real()
    layout: Any = "F" if order == "F" else "C"
    if kind.hasobject:
        if not isinstance(content, list) or len(content) != count:
            raise UnsafePickle(
                "the pickle holds an array of objects whose size does not agree with its content"
            )
        objects: NDArray[Any] = np.empty(count, dtype=object)
        for number, item in enumerate(content):
            objects[number] = item
        return objects.reshape(shape, order=layout)
    data = _as_bytes(content)
    if len(data) != count * kind.itemsize:
        raise UnsafePickle("the pickle holds an array whose size does not agree with its content")
    if not data:
        return np.zeros(shape, kind)
    return np.frombuffer(data, dtype=kind).reshape(shape, order=layout)


def _as_bytes(content: Any = b"", codec: str = "latin1") -> bytes:
    """Return bytes, or the text that old pickles keep bytes in."""
    if isinstance(content, str) and codec in ("latin1", "latin-1"):
        return content.encode("latin1")
    if not isinstance(content, bytes | bytearray):
        raise UnsafePickle("the pickle holds something else where bytes belong")
    return bytes(content)


def _ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    pairs = list(items.items()) if isinstance(items, dict) else [(key, value) for key, value in items]
    parts = [part for key, _ in pairs if isinstance(key, tuple) for part in key]
    if any(isinstance(part, tuple) for part in parts):  # see `_check_instructions`
        raise UnsafePickle("the pickle has an ordered dictionary whose keys are not plain values")
    return OrderedDict(pairs)


def _names() -> dict[tuple[str, str], Any]:
    names: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): _Name("collections.OrderedDict", _ordered_dict),
        ("_codecs", "encode"): _Name("_codecs.encode", _as_bytes),
        ("numpy", "dtype"): _Name("numpy.dtype", _Dtype),
        ("numpy", "ndarray"): _NDARRAY,
    }
    for module in ("builtins", "__builtin__"):
        names[module, "bytes"] = _Name("builtins.bytes", _as_bytes)
        names[module, "bytearray"] = _Name("builtins.bytearray", lambda *parts: bytearray(_as_bytes(*parts)))
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = _Name("numpy._reconstruct", _reconstruct)
        names[f"{core}.multiarray", "scalar"] = _Name(
            "numpy.scalar", lambda dtype, content: _build(content, dtype, (), "C")[()]
        )
        names[f"{core}.numeric", "_frombuffer"] = _Name(
            "numpy._frombuffer", lambda *parts: _Array(_build(*parts))
        )
    return names


NAMES: Mapping[tuple[str, str], Any] = _names()


class _Unpickler(pickle.Unpickler):
    """Looks names up in `NAMES`; `next_step` is the advice for a refused file."""

    def __init__(self, file: IO[bytes], encoding: str, next_step: NextStep) -> None:
        super().__init__(file, encoding=encoding)
        self._next_step = next_step

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in NAMES:
            raise UnsafePickle(
                f"the pickle asks for {module}.{name}, which is neither an array nor a plain container; "
                "it was not loaded",
                self._next_step,
            )
        return NAMES[module, name]


def _check_instructions(data: bytes, next_step: NextStep) -> None:
    """Refuse instructions that make other objects, or cost more than the bytes that hold them.

    The stack is followed with one number for each value: how deeply tuples are nested in it. Keys may be
    tuples of plain values only, as hashing tuples of tuples that share their parts takes exponential time.
    """
    stack: list[int] = []
    marks: list[int] = []
    memo: dict[int, int] = {}
    for instruction, argument in _instructions(data):
        name, before = instruction.name, instruction.stack_before
        if name in REFUSED:
            raise UnsafePickle(
                "the pickle holds something other than arrays and plain containers; it was not loaded",
                next_step,
            )
        if name in PUTS:
            number = len(memo) if argument is None else int(argument)
            if number > len(data):
                raise UnsafePickle("the pickle is damaged: it numbers more values than it holds")
            memo[number] = stack[-1]
        elif name in GETS:
            stack.append(memo[argument or 0])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "POP" and marks and marks[-1] == len(stack):
            marks.pop()
        else:
            slice_start = marks.pop() if pickletools.stackslice in before else len(stack)
            items = stack[slice_start:]
            fixed = slice_start - sum(kind not in SLICE for kind in before)
            taken = stack[fixed:slice_start]
            del stack[fixed:]
            keys = items[::2] if name in ("SETITEMS", "DICT") else taken[1:2] if name == "SETITEM" else []
            if max(keys, default=0) > 1:
                raise UnsafePickle(
                    "the pickle has a dictionary whose keys are not plain values; it was not loaded"
                )
            depth = taken[0] if name == "DUP" else 0
            if name in TUPLES:
                depth = 1 + max(items + taken, default=0)
            stack += [depth] * len(instruction.stack_after)


def _instructions(data: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, Any]]:
    """Yield each instruction with its argument.

    `pickletools.genops` would do, but for the texts of Python 2, which need not be ASCII.
    """
    stream = io.BytesIO(data)
    while code := stream.read(1):
        instruction = INSTRUCTIONS[code.decode("latin-1")]
        if instruction.name == "STRING":
            yield instruction, stream.readline()
        else:
            yield instruction, instruction.arg.reader(stream) if instruction.arg else None
        if instruction.name == "STOP":
            return
    raise UnsafePickle("the pickle is damaged: it is cut off")


def loads(
    data: bytes, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """Return the arrays and containers in a pickle; `next_step` is the advice for a refused one.

    Raises:
        UnsafePickle: It is damaged, or holds something else.

    >>> loads(pickle.dumps({"weight": np.arange(3)}))
    {'weight': array([0, 1, 2])}
    """
    if len(data) > max_bytes:
        raise UnsafePickle(f"the pickle has {len(data)} bytes, more than the {max_bytes} allowed")
    try:
        _check_instructions(data, next_step)
        return _real(_Unpickler(io.BytesIO(data), encoding, next_step).load(), 0, {})
    except UnsafePickle:
        raise
    except Exception as error:  # a hostile pickle can raise nearly anything
        raise UnsafePickle(f"the pickle is damaged: {type(error).__name__}: {error}") from None


def load(
    path: Path, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """Return the arrays and containers in a pickle file."""
    return loads(_read_limited(path, max_bytes), encoding, max_bytes, next_step)


def read_numpy_pickle(
    path: Path, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """Return what an `.npy` file of Python objects holds; an array of one object gives that object."""
    data = io.BytesIO(_read_limited(path, max_bytes))
    shape, dtype = read_npy_header(data, path.name)
    if not dtype.hasobject:
        raise UnsafePickle(f"{path.name} is a plain NumPy file without objects")
    loaded = loads(data.read(), encoding, max_bytes, next_step)
    return loaded.item() if isinstance(loaded, np.ndarray) and shape == () else loaded


def read_npy_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of an `.npy` file that is read from its start."""
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    except Exception as error:  # the header is a Python literal: its parser can raise nearly anything
        raise UnsafePickle(f"{name} is not a NumPy file: {error}") from None
    if any(size < 0 for size in shape):
        raise UnsafePickle(f"{name} is not a NumPy file: a shape of {shape}")
    return shape, dtype


def _read_limited(path: Path, max_bytes: int) -> bytes:
    size = path.stat().st_size
    if size > max_bytes:
        raise UnsafePickle(f"{path.name} has {size} bytes, more than the {max_bytes} allowed")
    return path.read_bytes()


def _real(value: Any, depth: int, done: dict[int, Any]) -> Any:
    """Replace placeholders by what they stand for, through all containers.

    `done` keeps one result per object, so that sharing stays sharing and costs linear time.
    """
    if isinstance(value, str | bytes | int | float | complex | bytearray | np.generic | None):
        return value
    if depth > MAX_DEPTH:
        raise UnsafePickle("the pickle nests deeper than any weight file does")
    if id(value) not in done:
        done[id(value)] = _real_container(value, depth + 1, done)
    return done[id(value)]


def _real_container(value: Any, depth: int, done: dict[int, Any]) -> Any:
    if isinstance(value, dict):
        filled: dict[Any, Any] = OrderedDict() if isinstance(value, OrderedDict) else {}
        done[id(value)] = filled
        filled.update((key, _real(item, depth, done)) for key, item in value.items())
        return filled
    if isinstance(value, list):
        items: list[Any] = []
        done[id(value)] = items
        items.extend(_real(item, depth, done) for item in value)
        return items
    if isinstance(value, tuple):
        return tuple(_real(item, depth, done) for item in value)
    if isinstance(value, _Dtype):
        return value.real()
    if isinstance(value, _Array) and value.value is not None:
        if value.value.dtype.hasobject:
            for index, item in zip(np.ndindex(value.value.shape), value.value.flat, strict=True):
                value.value[index] = _real(item, depth, done)
        return value.value
    raise UnsafePickle(f"the pickle holds {value!r:.60}, which is neither an array nor a plain container")
