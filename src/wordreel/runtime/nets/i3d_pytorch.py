"""The published PyTorch layout of I3D (`Mixed_3b.b1a.conv3d.weight`, …), read into the network of `i3d`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.nets.s3d import KINETICS  # S3D has the widths of I3D

Shape = tuple[int, ...]
FRAMES = 64
BLOCKS = ("3b", "3c", "4b", "4c", "4d", "4e", "4f", "5b", "5c")
UNITS = {
    "b0": "Branch_0/Conv3d_0a_1x1",
    "b1a": "Branch_1/Conv3d_0a_1x1",
    "b1b": "Branch_1/Conv3d_0b_3x3",
    "b2a": "Branch_2/Conv3d_0a_1x1",
    "b2b": "Branch_2/Conv3d_0b_3x3",
    "b3b": "Branch_3/Conv3d_0b_1x1",
}


@dataclass(frozen=True)
class I3D:
    """The shapes of the published checkpoint, and the graph of one window of `frames` frames."""

    frames: int = FRAMES
    size: int = 224
    stem: tuple[int, int, int] = (64, 64, 192)
    mixed: tuple[tuple[int, ...], ...] = tuple(widths for _, widths in KINETICS)
    classes: int = 400

    def shapes(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        for key, _, shape in self._units():
            shapes[f"{key}.conv3d.weight"] = shape
            for part in ("weight", "bias", "running_mean", "running_var"):
                shapes[f"{key}.bn.{part}"] = shape[:1]
        return shapes

    def heads(self) -> dict[str, Shape]:
        wide = self._out(self.mixed[-1])
        return {"logits.conv3d.weight": (self.classes, wide, 1, 1, 1), "logits.conv3d.bias": (self.classes,)}

    def model(self, state: Mapping[str, Array]) -> Any:
        from wordreel.runtime.nets import i3d

        return i3d.build(self.tree(state), frames=self.frames, size=self.size)

    def tree(self, state: Mapping[str, Array]) -> dict[str, Any]:
        """The weights as `i3d.build` takes them: kernels `[time, h, w, in, out]`, norms without scale.

        γ (w∗x − μ) / √(σ² + ε) + β equals the same with w and μ multiplied by γ and no scale.
        """
        params: dict[str, Any] = {}
        statistics: dict[str, Any] = {}
        for key, path, _ in self._units():
            scale = np.asarray(state[f"{key}.bn.weight"], np.float64)
            kernel = np.asarray(state[f"{key}.conv3d.weight"], np.float64).transpose(2, 3, 4, 1, 0) * scale
            mean = np.asarray(state[f"{key}.bn.running_mean"], np.float64) * scale
            variance = np.asarray(state[f"{key}.bn.running_var"], np.float64)
            shift = np.asarray(state[f"{key}.bn.bias"], np.float64)
            _put(params, path, {"Conv_0": {"kernel": kernel}, "BatchNorm_0": {"bias": shift}})
            _put(statistics, path, {"BatchNorm_0": {"mean": mean, "var": variance}})
        return {"params": params, "batch_stats": statistics}

    def _units(self) -> Iterator[tuple[str, tuple[str, ...], Shape]]:
        """Key, path in the tree, and kernel shape of every convolution, in order."""
        first, second, third = self.stem
        yield "Conv3d_1a_7x7", ("Conv3d_1a_7x7",), (first, 3, 7, 7, 7)
        yield "Conv3d_2b_1x1", ("Conv3d_2b_1x1",), (second, first, 1, 1, 1)
        yield "Conv3d_2c_3x3", ("Conv3d_2c_3x3",), (third, second, 3, 3, 3)
        into = third
        for block, widths in zip(BLOCKS, self.mixed, strict=True):
            name = f"Mixed_{block}"
            from_ = dict(zip(UNITS, (into, into, widths[1], into, widths[3], into), strict=True))
            for (unit, path), out in zip(UNITS.items(), widths, strict=True):
                side = 3 if path.endswith("3x3") else 1
                yield f"{name}.{unit}", (name, path), (out, from_[unit], side, side, side)
            into = self._out(widths)

    @staticmethod
    def _out(widths: tuple[int, ...]) -> int:
        return widths[0] + widths[2] + widths[4] + widths[5]


def _put(tree: dict[str, Any], path: tuple[str, ...], leaf: dict[str, Any]) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = leaf


I3D_KINETICS = I3D()
