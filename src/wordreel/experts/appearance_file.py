"""The appearance network as one small safetensors file, for a build without a download.

Batch norms are folded into the convolutions. Matrices (pointwise convolutions and the classifier) are bytes
with a scale per row, kernels over space (the stem, depthwise convolutions) float16, biases float32. The
header says what the network was trained on, and for how many pixels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.nets.efficientnet_lite import build, fold
from wordreel.runtime.quantise import dequantise, quantise
from wordreel.types import Float32
from wordreel.util.atomic import atomic_write
from wordreel.util.checksum import file_sha256

if TYPE_CHECKING:
    from wordreel.runtime.sessions import Network

FORMAT, KEY = 1, "wordreel.appearance"
BYTES, SCALES = "/bytes", "/scales"
HEAD = "_fc."


@dataclass(frozen=True)
class AppearanceFile:
    """A file of weights, mapped at the first use."""

    path: Path

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the network was trained on: `size` (pixels), `trained_on`, `licence` and figures.

        Raises:
            WeightsCorrupt: It is not such a file, or is damaged.
        """
        try:
            card = json.loads((self._stored[0] or {}).get(KEY, "{}"))
        except (ValueError, RecursionError) as error:
            raise self._corrupt(str(error)) from None
        written = card.get("format") if isinstance(card, dict) else None
        if written != FORMAT:
            raise self._corrupt(f"its format is {written!r:.20}, this program reads {FORMAT}")
        return dict(card)

    @cached_property
    def digest(self) -> str:
        """sha256 of the file: part of the expert's fingerprint."""
        try:
            return file_sha256(self.path)
        except OSError as error:
            raise self._corrupt(str(error)) from None

    def network(self) -> Network:
        """The network with its weights: `images [n, h, w, 3]` to `features [n, 1280]`."""
        from wordreel.runtime.sessions import Network

        try:
            return Network(build(self.layers()).SerializeToString())
        except KeyError as error:
            raise self._corrupt(f"it has no {error.args[0]}") from None

    def layers(self) -> dict[str, Float32]:
        """The folded convolutions, as `efficientnet_lite.build` takes them."""
        return {name: array for name, array in self._arrays().items() if not name.startswith(HEAD)}

    def head(self) -> tuple[Float32, Float32]:
        """`weight [classes, 1280]` and `bias [classes]` of the classifier."""
        arrays = self._arrays(HEAD)
        try:
            return arrays[f"{HEAD}weight"], arrays[f"{HEAD}bias"]
        except KeyError as error:
            raise self._corrupt(f"it has no {error.args[0]}") from None

    def _arrays(self, prefix: str = "") -> dict[str, Float32]:
        _ = self.card  # of the right format
        _, stored = self._stored
        arrays: dict[str, Float32] = {}
        for name, array in stored.items():
            if not name.startswith(prefix):
                continue
            if name.endswith(BYTES):
                whole = name.removesuffix(BYTES)
                if whole + SCALES not in stored:
                    raise self._corrupt(f"it has no {whole + SCALES}")
                scales = stored[whole + SCALES]
                if array.ndim != 2 or scales.shape != array.shape[:1]:
                    raise self._corrupt(f"{whole} has no scale for each row")
                matrix = dequantise(array, scales)
                arrays[whole] = matrix if whole.startswith(HEAD) else matrix[..., None, None]
            elif not name.endswith(SCALES):
                arrays[name] = array.astype(np.float32)
        return arrays

    @cached_property
    def _stored(self) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
        """The metadata and the arrays as they are in the file."""
        try:
            return map_safetensors(self.path)
        except (OSError, ValueError) as error:
            raise self._corrupt(str(error)) from None

    def _corrupt(self, why: str) -> WeightsCorrupt:
        return WeightsCorrupt(
            f"{self.path} is not a whole appearance network ({why})", NextStep("install wordreel again")
        )


def save_appearance(path: Path, weights: Mapping[str, NDArray[Any]], card: Mapping[str, Any]) -> None:
    """Write the weights of an EfficientNet-Lite by their published names, as a whole or not at all."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    head = {name: weights[name] for name in (f"{HEAD}weight", f"{HEAD}bias")}
    for name, array in {**fold(weights), **head}.items():
        if array.ndim == 1:
            arrays[name] = array.astype(np.float32)
        elif array[0, 0].size == 1:
            matrix = array.reshape(array.shape[:2]).astype(np.float32)
            arrays[name + BYTES], arrays[name + SCALES] = quantise(matrix)
        else:
            arrays[name] = array.astype(np.float16)
    about = json.dumps({"format": FORMAT, **card}, sort_keys=True)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}  # `save` ignores strides
    atomic_write(path, save(whole, metadata={KEY: about}))
