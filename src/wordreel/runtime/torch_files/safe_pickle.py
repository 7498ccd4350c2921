"""Read pickles of NumPy arrays and plain containers, and of nothing else.

A pickle is a program: it may import and call anything. This one knows a short list of names, each bound to
a function of this file that checks its arguments; every other name is refused before anything is imported.
It is built on the interpreter written in Python, because the one written in C allocates what a hostile memo
index or length asks for.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from wordreel.errors import NextStep, UnsafePickle
from wordreel.runtime.torch_files import safe_arrays

MAX_BYTES = 4 * 2**30
WEIGHTS_STEP = NextStep("ask for the weights in safetensors format, from a source you trust")


class Call:
    """A name a pickle may use. Pickles can call it but not look into it or change it."""

    __slots__ = ("_function", "_label")

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

    def __setstate__(self, state: object) -> NoReturn:
        raise UnsafePickle(f"the pickle tries to change {self._label}")

    def __repr__(self) -> str:
        return f"<{self._label}>"


def _ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    pairs = list(items.items()) if isinstance(items, dict) else [(key, value) for key, value in items]
    for key, _ in pairs:
        _check_key(key)
    return OrderedDict(pairs)


def _encode(text: str, codec: str = "latin1") -> bytes:
    if not isinstance(text, str) or codec not in ("latin1", "latin-1"):
        raise UnsafePickle("the pickle encodes something other than latin1 text")
    return text.encode("latin1")


def _bytearray(content: bytes | str = b"", codec: str = "latin1") -> bytearray:
    return bytearray(_encode(content, codec) if isinstance(content, str) else safe_arrays.as_bytes(content))


def _names() -> dict[tuple[str, str], Any]:
    names: dict[tuple[str, str], Any] = {
        ("collections", "OrderedDict"): Call("collections.OrderedDict", _ordered_dict),
        ("_codecs", "encode"): Call("_codecs.encode", _encode),
    }
    for module in ("builtins", "__builtin__"):
        names[module, "bytearray"] = Call("builtins.bytearray", _bytearray)
        names[module, "bytes"] = Call("builtins.bytes", lambda *parts: bytes(_bytearray(*parts)))
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = Call("numpy._reconstruct", safe_arrays.reconstruct)
        names[f"{core}.multiarray", "scalar"] = Call("numpy.scalar", safe_arrays.scalar)
        names[f"{core}.numeric", "_frombuffer"] = Call("numpy._frombuffer", safe_arrays.from_buffer)
    names["numpy", "dtype"] = Call("numpy.dtype", safe_arrays.Dtype)
    names["numpy", "ndarray"] = safe_arrays.NDARRAY
    return names


NAMES: Mapping[tuple[str, str], Any] = _names()


_Interpreter: Any = pickle._Unpickler  # Any, for its methods are not part of the published types


class SafeUnpickler(_Interpreter):  # type: ignore[misc]
    """The restricted interpreter.

    `names` adds to what a pickle may use; `next_step` is the advice for a refused file.
    """

    def __init__(
        self,
        file: io.BytesIO,
        encoding: str = "ASCII",
        names: Mapping[tuple[str, str], Any] | None = None,
        next_step: NextStep = WEIGHTS_STEP,
    ) -> None:
        super().__init__(file, encoding=encoding)
        self._allowed = {**NAMES, **(names or {})}
        self._next_step = next_step

    def find_class(self, module: str, name: str) -> Any:
        allowed = self._allowed.get((module, name))
        if allowed is None:
            raise UnsafePickle(
                f"the pickle asks for {module}.{name}, which is neither an array nor a plain container; "
                "it was not loaded",
                self._next_step,
            )
        return allowed

    def load_bytearray8(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(size)))  # reads the bytes before it allocates

    def load_setitem(self) -> None:
        _check_key(self.stack[-2])
        super().load_setitem()

    def load_setitems(self) -> None:
        for key in self.stack[::2]:
            _check_key(key)
        super().load_setitems()

    def load_dict(self) -> None:
        for key in self.stack[::2]:
            _check_key(key)
        super().load_dict()

    def load_refused(self) -> NoReturn:
        raise UnsafePickle(
            "the pickle holds something other than arrays and plain containers; it was not loaded",
            self._next_step,
        )


REFUSED = (
    pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET, pickle.NEWOBJ,
    pickle.NEWOBJ_EX, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
)  # fmt: skip
SafeUnpickler.dispatch = {
    **_Interpreter.dispatch,
    pickle.BYTEARRAY8[0]: SafeUnpickler.load_bytearray8,
    pickle.SETITEM[0]: SafeUnpickler.load_setitem,
    pickle.SETITEMS[0]: SafeUnpickler.load_setitems,
    pickle.DICT[0]: SafeUnpickler.load_dict,
    **{code[0]: SafeUnpickler.load_refused for code in REFUSED},
}


def read_stream(unpickler: SafeUnpickler) -> Any:
    """Run one pickle; every way in which it can be wrong becomes `UnsafePickle`."""
    try:
        return unpickler.load()
    except UnsafePickle:
        raise
    except Exception as error:  # a hostile pickle can raise nearly anything from inside the interpreter
        raise UnsafePickle(f"the pickle is damaged: {type(error).__name__}: {error}") from None


def loads(
    data: bytes, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """Load the arrays and containers in a pickle; `next_step` is the advice for a refused one.

    >>> loads(pickle.dumps({"weight": np.arange(3)}))
    {'weight': array([0, 1, 2])}
    """
    if len(data) > max_bytes:
        raise UnsafePickle(f"the pickle has {len(data)} bytes, more than the {max_bytes} allowed")
    return safe_arrays.finish(read_stream(SafeUnpickler(io.BytesIO(data), encoding, next_step=next_step)))


def load(
    path: Path, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """Load the arrays and containers in a pickle file."""
    return loads(read_limited(path, max_bytes), encoding, max_bytes, next_step)


def read_numpy_pickle(
    path: Path, encoding: str = "ASCII", max_bytes: int = MAX_BYTES, next_step: NextStep = WEIGHTS_STEP
) -> Any:
    """An `.npy` file whose array holds Python objects; an array of one object gives that object."""
    data = io.BytesIO(read_limited(path, max_bytes))
    shape, dtype = read_npy_header(data, path.name)
    if not dtype.hasobject:
        raise UnsafePickle(f"{path.name} is a plain NumPy file without objects")
    loaded = loads(data.read(), encoding, max_bytes, next_step)
    return loaded.item() if isinstance(loaded, np.ndarray) and shape == () else loaded


def read_npy_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the dtype of an `.npy` file that is read from its start."""
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


def read_limited(path: Path, max_bytes: int) -> bytes:
    """A file's bytes, unless there are too many."""
    size = path.stat().st_size
    if size > max_bytes:
        raise UnsafePickle(f"{path.name} has {size} bytes, more than the {max_bytes} allowed")
    return path.read_bytes()


def _check_key(key: object) -> None:
    # Plain keys only: hashing a tuple of tuples of ... that share their parts takes exponential time.
    parts = key if isinstance(key, tuple) else (key,)
    if not all(part is None or isinstance(part, str | bytes | int | float) for part in parts):
        raise UnsafePickle("the pickle has a dictionary whose keys are not plain values; it was not loaded")
