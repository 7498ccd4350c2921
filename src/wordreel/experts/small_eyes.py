"""Small eyes: EfficientNet-Lite2 and a small head into CLIP's space, both shipped with wordreel.

    e(x) = unit(S f(x) + W₂ gelu(W₁ f(x) + b₁) + b₂)

f(x) are the pooled features of the appearance network; the head was taught by CLIP's image tower on the same
pictures.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.experts import appearance
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.sessions import Network, in_batches, picture_batch
from wordreel.types import Float32
from wordreel.util.checksum import file_sha256

FILE = Path(__file__).parent / "data" / "small_eyes.safetensors"
FEATURES, DIM = 1280, 512


@cache
def digest(file: Path) -> str:
    """Identify both networks."""
    try:
        return appearance.SHA256 + file_sha256(file)
    except OSError as error:
        raise _damaged(file, str(error)) from None


class SmallEyes:
    """The loaded networks."""

    def __init__(self, file: Path) -> None:
        self._head = Network(head_network(*read_head(file)))
        self._features = appearance.open_network()

    def __call__(self, squares: NDArray[np.uint8]) -> Float32:
        """Embeddings `[n, 512]` of pictures `[n, 224, 224, 3]`, of any length."""
        features = in_batches(lambda part: self._features(images=part)["features"], squares, picture_batch())
        return self._head(features=features)["embeddings"]


def read_head(file: Path) -> tuple[Float32, Float32, Float32, Float32, Float32]:
    """Return `w1 [h, 1280]`, `b1 [h]`, `w2 [512, h]`, `b2 [512]` and `skip [512, 1280]`.

    Raises:
        WeightsCorrupt: The file is not there, or does not hold them.
    """
    try:
        _, arrays = map_safetensors(file)
        w1, b1, w2, b2, skip = (arrays[name].astype(np.float32) for name in ("w1", "b1", "w2", "b2", "skip"))
    except (OSError, ValueError) as error:
        raise _damaged(file, str(error)) from None
    except KeyError as error:
        raise _damaged(file, f"it has no {error.args[0]}") from None
    hidden = len(b1)
    shapes = [array.shape for array in (w1, w2, b2, skip)]
    if shapes != [(hidden, FEATURES), (DIM, hidden), (DIM,), (DIM, FEATURES)]:
        raise _damaged(file, f"its arrays have the shapes {shapes}")
    return w1, b1, w2, b2, skip


def head_network(w1: Float32, b1: Float32, w2: Float32, b2: Float32, skip: Float32) -> bytes:
    """Return the head as a model: `features [n, 1280]` to `embeddings [n, 512]`."""
    from wordreel.runtime.nets.graph import Graph

    graph = Graph("small-eyes")
    x = graph.input("features", ("n", FEATURES))
    hidden = graph.linear(x, w1, b1)
    # gelu(h) = h · (1 + erf(h / √2)) / 2
    bell = graph.op("Erf", graph.op("Mul", hidden, graph.constant(np.float32(np.sqrt(0.5)))))
    half = graph.op("Mul", hidden, graph.constant(np.float32(0.5)))
    gelu = graph.op("Mul", half, graph.op("Add", bell, graph.constant(np.float32(1.0))))
    embeddings = graph.op("Add", graph.linear(gelu, w2, b2), graph.linear(x, skip))
    return bytes(graph.finish({"embeddings": embeddings}).SerializeToString())


def _damaged(file: Path, why: str) -> WeightsCorrupt:
    return WeightsCorrupt(f"{file} does not hold the small eyes ({why})", NextStep("install wordreel again"))
