"""Read PyTorch checkpoints and safetensors files into NumPy arrays, without PyTorch and without running code.

Two layouts of checkpoint exist: a zip with `data.pkl` and one file per storage, and the older stream of five
pickles followed by the storages. Both go through the restricted reader of `safe_pickle`.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import UnsafePickle, WeightsError
from wordreel.runtime.torch_files import safe_arrays
from wordreel.runtime.torch_files.safe_pickle import MAX_BYTES, SafeUnpickler, read_limited, read_stream
from wordreel.runtime.torch_files.torch_unpickler import (
    LenientTorchUnpickler,
    Storage,
    TorchUnpickler,
    decode,
)

MAGIC = 0x1950A86A20F9469CFC6C
DAMAGED_ZIP = (
    zipfile.BadZipFile, zlib.error, struct.error, KeyError, ValueError, NotImplementedError, RuntimeError,
    EOFError, OverflowError, OSError,
)  # fmt: skip
"""What `zipfile` raises for a damaged archive; RuntimeError for one that asks for a password."""
WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "module")
SAFETENSORS: dict[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "bfloat16", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def read_state_dict(
    path: Path, max_bytes: int = MAX_BYTES, *, skip_unknown: bool = False
) -> dict[str, NDArray[Any]]:
    """The named arrays of a checkpoint or safetensors file, recognised by content, not by name.

    With `skip_unknown`, objects of unknown classes beside the weights become text instead of an error; no
    class is imported either way.
    """
    return named_arrays(read_checkpoint(path, max_bytes, skip_unknown=skip_unknown), path.name)


def named_arrays(content: Any, name: str) -> dict[str, NDArray[Any]]:
    """The named arrays in a checkpoint's content, at the top or under one of the usual keys."""
    for _ in range(len(WRAPPERS)):
        if not isinstance(content, dict):
            break
        arrays = {str(key): value for key, value in content.items() if isinstance(value, np.ndarray)}
        if arrays:
            return arrays
        content = next((content[key] for key in WRAPPERS if key in content), None)
    raise WeightsError(f"{name} holds no named arrays; is it a checkpoint of model weights?")


def read_checkpoint(path: Path, max_bytes: int = MAX_BYTES, *, skip_unknown: bool = False) -> Any:
    """Everything in a checkpoint: the containers as they are, tensors as arrays (bfloat16 as float32)."""
    data = read_limited(path, max_bytes)
    # First, for the length that begins a safetensors file may look like the start of the others.
    if data[4:9] == b"\0\0\0\0{":
        return _read_safetensors(data, path.name)
    if data[:2] == b"PK":
        return _read_zip(data, max_bytes, _unpickler(skip_unknown))
    if data[:1] == b"\x80":
        return _read_stream(data, _unpickler(skip_unknown))
    raise WeightsError(f"{path.name} is neither a PyTorch checkpoint nor a safetensors file")


def _unpickler(skip_unknown: bool) -> type[TorchUnpickler]:
    return LenientTorchUnpickler if skip_unknown else TorchUnpickler


def _read_zip(data: bytes, max_bytes: int, unpickler: type[TorchUnpickler]) -> Any:
    storages: dict[str, Storage] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            if sum(member.file_size for member in zipped.infolist()) > max_bytes:
                raise UnsafePickle(f"the checkpoint unpacks to more than the {max_bytes} bytes allowed")
            content, folder = zip_content(zipped, unpickler, storages)
            for key, storage in storages.items():
                storage.content = zipped.read(f"{folder}{key}")
    except DAMAGED_ZIP as error:
        raise UnsafePickle(f"the checkpoint is damaged: {error}") from None
    return safe_arrays.finish(content)


def zip_content(
    zipped: zipfile.ZipFile, unpickler: type[TorchUnpickler], storages: dict[str, Storage]
) -> tuple[Any, str]:
    """The content of an open checkpoint with its storages still empty, and the folder they are in."""
    names = zipped.namelist()
    main = next((name for name in names if name.rpartition("/")[2] == "data.pkl"), None)
    if main is None:
        raise WeightsError("the zip file is not a PyTorch checkpoint: it has no data.pkl")
    folder = main.removesuffix("data.pkl")
    if f"{folder}byteorder" in names and zipped.read(f"{folder}byteorder") != b"little":
        raise WeightsError("the checkpoint was written on a big-endian machine, which is not read")
    return read_stream(unpickler(io.BytesIO(zipped.read(main)), storages)), f"{folder}data/"


def _read_stream(data: bytes, unpickler: type[TorchUnpickler]) -> Any:
    file, storages = io.BytesIO(data), dict[str, Storage]()
    if read_stream(SafeUnpickler(file)) != MAGIC:
        raise WeightsError("the pickle is not a PyTorch checkpoint; it was not loaded")
    read_stream(SafeUnpickler(file))  # the protocol's version
    read_stream(SafeUnpickler(file))  # the machine it was written on
    content = read_stream(unpickler(file, storages))
    keys = read_stream(SafeUnpickler(file))
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise UnsafePickle("the checkpoint is damaged: it does not list its storages")
    for key in keys:
        if key not in storages:
            raise UnsafePickle("the checkpoint is damaged: it lists a storage nothing uses")
        storage = storages[key]
        count = int.from_bytes(file.read(8), "little", signed=True)
        if count != storage.count:
            raise UnsafePickle("the checkpoint is damaged: a storage does not have its declared size")
        storage.content = file.read(max(0, count) * storage.width)
    return safe_arrays.finish(content)


def _read_safetensors(data: bytes, name: str) -> dict[str, NDArray[Any]]:
    import safetensors

    try:
        parts: list[tuple[str, Mapping[str, Any]]] = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise WeightsError(f"{name} is not a safetensors file: {error}") from None
    arrays: dict[str, NDArray[Any]] = {}
    for key, part in parts:
        if part["dtype"] not in SAFETENSORS:
            raise WeightsError(f"{name}: {key} has the type {part['dtype']}, which is not read")
        arrays[key] = decode(bytes(part["data"]), SAFETENSORS[part["dtype"]]).reshape(part["shape"])
    return arrays
