"""Read PyTorch checkpoints and safetensors files into NumPy arrays; nothing in them is run.

Checkpoints go through PyTorch's restricted loader (`weights_only`), which builds tensors and containers only.
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
from numpy.typing import NDArray

from wordreel.errors import NextStep, UnsafePickle, WeightsError

MAGIC = 0x1950A86A20F9469CFC6C  # begins checkpoints of the older layout
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "module")
SAFETENSORS: dict[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
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


def read_state_dict(path: Path) -> dict[str, NDArray[Any]]:
    """Return the named arrays of a checkpoint or safetensors file, recognised by content, not by name."""
    return named_arrays(read_checkpoint(path), path.name)


def named_arrays(content: Any, name: str) -> dict[str, NDArray[Any]]:
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


def _read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    import safetensors

    try:
        parts = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise WeightsError(f"{path.name} is not a safetensors file: {error}") from None
    arrays: dict[str, NDArray[Any]] = {}
    for key, part in parts:
        kind, data = part["dtype"], bytes(part["data"])
        if kind == "BF16":  # the upper half of a float32
            value: NDArray[Any] = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        elif kind in SAFETENSORS:
            value = np.frombuffer(data, SAFETENSORS[kind])
        else:
            raise WeightsError(f"{path.name}: {key} has the type {kind}, which is not read")
        arrays[key] = value.reshape(part["shape"])
    return arrays
