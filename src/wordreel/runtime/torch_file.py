"""Read PyTorch checkpoints and safetensors files into NumPy arrays, and check them.

Nothing in a file is run: checkpoints go through PyTorch's restricted loader (`weights_only`), which builds
tensors and containers only.
"""

from __future__ import annotations

import pickle
import pickletools
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, UnsafePickle, WeightsError
from wordreel.runtime.mapped_arrays import DTYPES
from wordreel.types import Array

MAGIC = 0x1950A86A20F9469CFC6C  # begins checkpoints of the older layout
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "module")
Shape = tuple[int, ...]
COUNTER = "num_batches_tracked"  # of training only
WRAPPER = "module."  # put before every key by networks trained on several devices
STREAM_PICKLES = 4  # of the older layout: magic number, version, machine, content
UNSAFE = NextStep("ask for the weights in safetensors format, from a source you trust")


class Placeholder:
    """Stands for an object of another class in a checkpoint, such as a trainer's configuration.

    `state` holds its attributes, if it has any.
    """

    state: Any = None

    def __init__(self, *arguments: object, **options: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        self.state = state


def read_state_dict(path: Path) -> dict[str, Array]:
    """Return the named arrays of a checkpoint or safetensors file, recognised by content, not by name."""
    return named_arrays(read_checkpoint(path), path.name)


def named_arrays(content: Any, name: str) -> dict[str, Array]:
    """Return the named arrays in a checkpoint's content, at the top or under one of the usual keys."""
    for _ in range(len(WRAPPERS)):
        if not isinstance(content, dict):
            break
        arrays = {str(key): value for key, value in content.items() if isinstance(value, np.ndarray)}
        if arrays:
            return arrays
        content = next((content[key] for key in WRAPPERS if key in content), None)
    raise WeightsError(f"{name} holds no named arrays; is it a checkpoint of model weights?")


def read_checkpoint(path: Path, *, placeholders: bool = False) -> Any:
    """Return everything in a checkpoint: containers as they are, tensors as arrays (bfloat16 as float32).

    With `placeholders`, objects of unknown classes become a `Placeholder` instead of an error.
    """
    with path.open("rb") as file:
        start = file.read(9)
    if start[4:] == b"\0\0\0\0{":
        return _read_safetensors(path)
    if start[:2] != b"PK" and start[:1] != b"\x80":
        raise WeightsError(f"{path.name} is neither a PyTorch checkpoint nor a safetensors file")
    return _arrays(_load(path, placeholders))


def is_torchscript(path: Path) -> bool:
    """Return whether a file is an archive of TorchScript, whose loading runs code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _load(path: Path, placeholders: bool) -> Any:
    torch = _torch(path)
    try:
        names = sorted(_globals(path)) if placeholders else []
        stand_ins = [(type("Placeholder", (Placeholder,), {}), name) for name in names if _unknown(name)]
        with torch.serialization.safe_globals(stand_ins):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"asks for {named[1]}" if named else f"is damaged: {str(error).splitlines()[0][:200]}"
        raise UnsafePickle(f"{path.name} {what}; it was not loaded", UNSAFE) from None
    except Exception as error:  # a damaged file can raise nearly anything
        raise UnsafePickle(f"{path.name} is damaged: {str(error).splitlines()[:1]}") from None


def _torch(path: Path) -> Any:
    try:
        import torch
    except ImportError:
        raise WeightsError(
            f"{path.name} is a PyTorch checkpoint, which torch reads",
            NextStep("run: pip install 'wordreel[train]'"),
        ) from None
    return torch


def _unknown(name: str) -> bool:
    return name.partition(".")[0] not in ("torch", "collections", "_codecs")


def _globals(path: Path) -> set[str]:
    """Return the names that the pickles of a checkpoint ask for."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            main = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            return set(_names_in(archive.read(main)))
    found: set[str] = set()
    with path.open("rb") as file:
        for _ in range(STREAM_PICKLES):
            found |= set(_names_in(file))
    return found


def _names_in(stream: Any) -> Iterator[str]:
    """Yield the names of one pickle; protocol 2, which PyTorch writes, has them in the instruction itself."""
    for instruction, argument, _ in pickletools.genops(stream):
        if instruction.name == "GLOBAL":
            yield str(argument).replace(" ", ".")


def _arrays(content: Any) -> Any:
    """Return the same containers with arrays for tensors."""
    if hasattr(content, "detach"):
        tensor = content.detach()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if isinstance(content, Mapping):
        return {key: _arrays(value) for key, value in content.items()}
    return type(content)(map(_arrays, content)) if type(content) in (list, tuple) else content


def _read_safetensors(path: Path) -> dict[str, Array]:
    import safetensors

    try:
        parts = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise WeightsError(f"{path.name} is not a safetensors file: {error}") from None
    arrays: dict[str, Array] = {}
    for key, part in parts:
        kind, data = part["dtype"], bytes(part["data"])
        if kind == "BF16":  # the upper half of a float32
            value: Array = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        elif kind in DTYPES:
            value = np.frombuffer(data, DTYPES[kind])
        else:
            raise WeightsError(f"{path.name}: {key} has the type {kind}, which is not read")
        arrays[key] = value.reshape(part["shape"])
    return arrays


def unwrapped(state: Mapping[str, Array]) -> dict[str, Array]:
    """Return the state without the wrapper's prefix and without counters that only training uses.

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
