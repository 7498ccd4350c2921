"""Networks in 8 bits that are made from other weights once, and stored beside them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wordreel.cores import cores
from wordreel.nets.runtime import Network, shared_by
from wordreel.weights.array_cache import write_shared


def derived_network(root: Path, name: str, make: Callable[[], bytes]) -> Network:
    """The network of a name, made again if its file is missing or damaged.

    `name` must identify all that the network depends on. A run has one thread: queries come side by side.
    """
    path = root / "derived" / f"{name}-8-bits.onnx"
    with shared_by(cores()):
        with suppress(Exception):  # onnxruntime's errors share no class: missing, or damaged
            return Network(path)
        network = make()
        with suppress(OSError):  # a folder that cannot be written costs only time
            write_shared(path, network)
        return Network(network)
