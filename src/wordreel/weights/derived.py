"""Arrays that follow from weights and take seconds to work out: worked out once, kept beside the weights."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wordreel.types import Float32

Arrays = dict[str, Float32]


def derived(root: Path, key: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of `make()`, from `root/derived/<key>.safetensors` if they are there.

    `key` must name everything the arrays depend on. A file that cannot be read is made anew; a folder that
    cannot be written to costs only time.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save

    place = root / "derived" / f"{key}.safetensors"
    with suppress(OSError, SafetensorError):
        return dict(load_file(str(place)))
    made = make()
    with suppress(OSError):
        write_aside(place, save(made))
    return made


def write_aside(place: Path, data: bytes) -> None:
    """Write a file beside its place and then put it there: whoever else makes it sees all of it or none."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(place)
