"""A disk cache for arrays that take seconds to compute from weights, next to the weights."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordreel.types import Float32

    Arrays = dict[str, Float32]


def cached_arrays(root: Path, key: str, compute: Callable[[], Arrays]) -> Arrays:
    """The arrays of `compute()`, read from `root/derived/<key>.safetensors` if they are there.

    `key` must identify everything the arrays depend on. They are read-only. A file that cannot be read is
    computed again; a folder that cannot be written costs only time.
    """
    from wordreel.runtime.mapped_arrays import map_safetensors

    path = root / "derived" / f"{key}.safetensors"
    with suppress(OSError, ValueError):
        return map_safetensors(path)[1]
    from safetensors.numpy import save

    arrays = compute()
    with suppress(OSError):
        write_shared(path, save(arrays))
    return arrays


def write_shared(path: Path, data: bytes) -> None:
    """Replace a file as a whole. Unlike `atomic_write`, several processes may write the same one at once."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(path)
