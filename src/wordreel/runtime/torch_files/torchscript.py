"""Read the weights of TorchScript archives, as OpenAI released CLIP, without running their code.

Such an archive holds the module tree as a pickle of objects whose classes are TorchScript code. The classes
are neither read nor called: `torch_file` puts placeholders in their place, of which only arrays are taken.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import WeightsError
from wordreel.runtime.torch_files.safe_pickle import MAX_BYTES
from wordreel.runtime.torch_files.torch_file import DAMAGED_ZIP, read_checkpoint
from wordreel.runtime.torch_files.torch_unpickler import OpaqueText

MAX_DEPTH = 20


def is_torchscript(path: Path) -> bool:
    """Whether a file is a zip with TorchScript's table of constants."""
    try:
        with zipfile.ZipFile(path) as zipped:
            return any(name.rpartition("/")[2] == "constants.pkl" for name in zipped.namelist())
    except DAMAGED_ZIP:
        return False


def read_torchscript(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, NDArray[Any]]:
    """The arrays of a TorchScript module and the modules inside it, named as a state dict names them."""
    arrays: dict[str, NDArray[Any]] = {}
    _collect(read_checkpoint(path, max_bytes, skip_unknown=True), "", arrays, 0)
    if not arrays:
        raise WeightsError(f"{path.name} is a TorchScript archive without weights")
    return arrays


def _collect(value: Any, at: str, arrays: dict[str, NDArray[Any]], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise WeightsError("the TorchScript archive nests deeper than any model does")
    if isinstance(value, OpaqueText):
        value = value.state
    if isinstance(value, np.ndarray):
        arrays[at] = value
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(item, f"{at}.{key}" if at else str(key), arrays, depth + 1)
