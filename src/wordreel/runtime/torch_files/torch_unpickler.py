"""The restricted unpickler of PyTorch checkpoints: tensors over storages, and nothing that runs code."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import UnsafePickle
from wordreel.runtime.torch_files import safe_arrays
from wordreel.runtime.torch_files.safe_pickle import Call, SafeUnpickler

STORAGES: dict[str, str] = {
    "Float": "<f4", "Double": "<f8", "Half": "<f2", "BFloat16": "bfloat16", "Long": "<i8", "Int": "<i4",
    "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?",
}  # fmt: skip


class Storage:
    """A run of numbers of one kind, filled in before tensors use it."""

    __slots__ = ("content", "count", "kind")

    def __init__(self, kind: str, count: int) -> None:
        self.kind, self.count = kind, count
        self.content: bytes | None = None

    @property
    def width(self) -> int:
        return 2 if self.kind == "bfloat16" else np.dtype(self.kind).itemsize

    def values(self) -> NDArray[Any]:
        if self.content is None or len(self.content) != self.count * self.width:
            raise UnsafePickle("the checkpoint names numbers it does not hold")
        return decode(self.content, self.kind)

    def __setstate__(self, state: object) -> None:
        raise UnsafePickle("the checkpoint tries to change a storage")


class Tensor:
    """A view of a storage: `value[i, j, …] = storage[offset + i · stride₀ + j · stride₁ + …]`."""

    __slots__ = ("offset", "shape", "storage", "strides")

    def __init__(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> None:
        self.storage, self.offset = storage, offset
        self.shape, self.strides = safe_arrays.checked_shape(shape), safe_arrays.checked_shape(strides)
        if not isinstance(storage, Storage) or not isinstance(offset, int) or offset < 0:
            raise UnsafePickle("the checkpoint holds a tensor without a storage")
        if len(self.shape) != len(self.strides):
            raise UnsafePickle("the checkpoint holds a tensor whose shape and strides disagree")

    def finish(self) -> NDArray[Any]:
        values = self.storage.values()
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        count = math.prod(self.shape)
        if count == 0:
            return np.zeros(self.shape, values.dtype)
        if last >= len(values) or count > len(values):
            raise UnsafePickle("the checkpoint holds a tensor larger than its storage")
        steps = [stride * values.itemsize for stride in self.strides]
        view = np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, steps, writeable=False)
        return np.ascontiguousarray(view).reshape(self.shape)

    def __setstate__(self, state: object) -> None:
        raise UnsafePickle("the checkpoint tries to change a tensor")


class TorchName:
    """A name that means something to PyTorch and is only a name here."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def finish(self) -> str:
        return self.text

    def __setstate__(self, state: object) -> None:
        raise UnsafePickle(f"the checkpoint tries to change {self.text}")


def decode(content: bytes, kind: str) -> NDArray[Any]:
    """Numbers from little-endian bytes; bfloat16 is the upper half of a float32."""
    if kind == "bfloat16":
        return (np.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(content, kind)


def _from_type(function: Any, kind: Any, arguments: Any, *_: Any) -> Any:
    if not isinstance(function, Call):
        raise UnsafePickle("the checkpoint rebuilds a tensor in an unknown way")
    return function(*arguments)


def _torch_names() -> dict[tuple[str, str], Any]:
    first = Call("torch parameter", lambda data, *_: data)
    tensor = Call("torch tensor", Tensor)
    names: dict[tuple[str, str], Any] = {
        ("torch._utils", "_rebuild_tensor"): tensor,
        ("torch._utils", "_rebuild_tensor_v2"): tensor,
        ("torch._utils", "_rebuild_parameter"): first,
        ("torch._utils", "_rebuild_parameter_with_state"): first,
        ("torch._tensor", "_rebuild_from_type_v2"): Call("torch tensor", _from_type),
        ("torch", "Tensor"): TorchName("torch.Tensor"),
        ("torch.nn.parameter", "Parameter"): TorchName("torch.nn.Parameter"),
        ("torch", "Size"): Call("torch.Size", safe_arrays.checked_shape),
        ("torch", "device"): Call("torch.device", lambda *parts: TorchName(":".join(map(str, parts)))),
    }
    floats, integers = (
        ("float32", "float64", "float16", "bfloat16"),
        ("int64", "int32", "int16", "int8", "uint8"),
    )
    for name in (*floats, *integers, "bool"):
        names["torch", name] = TorchName(f"torch.{name}")
    for name in STORAGES:
        names["torch", f"{name}Storage"] = TorchName(name)
        names["torch.cuda", f"{name}Storage"] = TorchName(name)
    return names


class TorchUnpickler(SafeUnpickler):
    """A `SafeUnpickler` for PyTorch's tensors, whose storages are outside of the pickle."""

    def __init__(self, file: io.BytesIO, storages: dict[str, Storage]) -> None:
        super().__init__(file, "utf-8", _torch_names())
        self._storages = storages

    def persistent_load(self, reference: Any) -> Storage:
        if not isinstance(reference, tuple) or len(reference) < 5 or reference[0] != "storage":
            raise UnsafePickle("the checkpoint refers to something other than a storage")
        _, marker, key, _, count, *view = reference
        if not isinstance(marker, TorchName) or marker.text not in STORAGES or not isinstance(count, int):
            raise UnsafePickle("the checkpoint refers to a storage of an unknown kind")
        if view and view[0] is not None:
            raise UnsafePickle("the checkpoint uses views of storages, which PyTorch no longer writes")
        return self._storages.setdefault(str(key), Storage(STORAGES[marker.text], count))


class OpaqueText(str):
    """An object of an unknown class as it comes out of a checkpoint: `<module.Class>`.

    `state` holds its attributes where they are arrays, plain containers and other such objects; else None.
    """

    state: Any


class OpaqueObject:
    """A placeholder for an object of an unknown class, such as a trainer's configuration.

    The class is neither imported nor called; the placeholder keeps the attributes and ignores the rest.
    """

    __slots__ = ("name", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: Any = None

    def __call__(self, *_: Any) -> OpaqueObject:
        return OpaqueObject(self.name)

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __setitem__(self, key: object, value: object) -> None:
        pass

    def append(self, item: object) -> None:
        pass

    def extend(self, items: object) -> None:
        pass

    def finish_with(self, finish: Callable[[Any], Any], done: dict[int, Any]) -> OpaqueText:
        result = done[id(self)] = OpaqueText(f"<{self.name}>")
        try:
            result.state = finish(self.state)
        except UnsafePickle:
            result.state = None
        return result


class LenientTorchUnpickler(TorchUnpickler):
    """A `TorchUnpickler` that replaces objects of unknown classes by placeholders, not an error."""

    def find_class(self, module: str, name: str) -> Any:
        known = self._allowed.get((module, name))
        return OpaqueObject(f"{module}.{name}"[:200]) if known is None else known

    def load_new_object(self) -> None:
        self.stack.pop()  # the arguments
        new = self.stack.pop()
        if not isinstance(new, OpaqueObject):
            raise UnsafePickle("the checkpoint creates an object in an unsupported way")
        self.append(new())


LenientTorchUnpickler.dispatch = {
    **TorchUnpickler.dispatch,
    pickle.NEWOBJ[0]: LenientTorchUnpickler.load_new_object,
}
