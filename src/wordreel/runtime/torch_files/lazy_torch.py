"""Open PyTorch checkpoints so that each array is read when it is used, not all of them at once."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wordreel.errors import UnsafePickle
from wordreel.runtime.torch_files.lazy_state import LazyState
from wordreel.runtime.torch_files.torch_file import DAMAGED_ZIP, WRAPPERS, read_state_dict, zip_content
from wordreel.runtime.torch_files.torch_unpickler import Storage, Tensor, TorchUnpickler
from wordreel.types import Array

MAX_TABLE = 64 * 2**20  # bytes of everything in the file that is not an array
MAX_SHARERS = 4  # of one storage, which is read again for each


def open_state_dict(path: Path) -> Mapping[str, Array]:
    """The named arrays of a checkpoint.

    Zip files are read array by array, and may be of any size. Older files, files that need a second look and
    files whose arrays share storages are read as a whole by `read_state_dict`, which also words the errors.
    """
    storages: dict[str, Storage] = {}
    try:
        with zipfile.ZipFile(path) as zipped:
            tables = [member for member in zipped.infolist() if "/data/" not in member.filename]
            if sum(member.file_size for member in tables) > MAX_TABLE:
                raise UnsafePickle(f"{path.name} describes its arrays in more than {MAX_TABLE} bytes")
            content, folder = zip_content(zipped, TorchUnpickler, storages)
            sizes = {member.filename: member.file_size for member in zipped.infolist()}
    except DAMAGED_ZIP:
        return read_state_dict(path)
    tensors = _named_tensors(content)
    sharers = Counter(id(tensor.storage) for tensor in tensors.values())
    if not tensors or max(sharers.values()) > MAX_SHARERS:
        return read_state_dict(path)
    members = {id(storage): f"{folder}{key}" for key, storage in storages.items()}
    for storage in storages.values():
        if sizes.get(members[id(storage)]) != storage.count * storage.width:
            raise UnsafePickle(f"{path.name} is damaged: it names numbers it does not hold")
    return LazyState(
        {key: _reader(path, members[id(tensor.storage)], tensor) for key, tensor in tensors.items()}
    )


def _named_tensors(content: Any) -> dict[str, Tensor]:
    """At the top or under one of the usual keys, as `named_arrays` finds them."""
    for _ in range(len(WRAPPERS)):
        if not isinstance(content, dict):
            break
        tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
        if tensors:
            return tensors
        content = next((content[key] for key in WRAPPERS if key in content), None)
    return {}


def _reader(path: Path, member: str, tensor: Tensor) -> Callable[[], Array]:
    def read() -> Array:
        try:
            with zipfile.ZipFile(path) as zipped:
                tensor.storage.content = zipped.read(member)
            return tensor.finish()
        except DAMAGED_ZIP as error:
            raise UnsafePickle(f"{path.name} is damaged: {error}") from None
        finally:
            tensor.storage.content = None

    return read
