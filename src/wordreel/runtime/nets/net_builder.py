"""Build ONNX graphs of published networks: every layer declares the key and shape of the weights it uses.

A network is defined once and run twice: without weights it only declares them, which gives the table that a
checkpoint is checked against; with weights it builds the graph. Key and shape are written once, beside the
layer that uses them, so the check and the network cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.nets.graph import Graph, fold_batch_norm
from wordreel.runtime.sessions import Precision

Shape = tuple[int, ...]


class NetBuilder:
    """A graph under construction, the `shapes` it needs from a checkpoint, and the unused `heads`."""

    def __init__(
        self,
        name: str,
        state: Mapping[str, Array] | None = None,
        sidecar: Path | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self.graph = Graph(name, sidecar, precision)
        self.shapes: dict[str, Shape] = {}
        self.heads: dict[str, Shape] = {}
        self._state = state

    def tensor(self, key: str, *shape: int) -> Array:
        """The weights under `key`; without weights, a placeholder of that shape that takes no memory."""
        self.shapes[key] = shape
        if self._state is None:
            return np.broadcast_to(np.float32(1.0), shape)
        return np.asarray(self._state[key], dtype=np.float32)

    def head(self, key: str, *shape: int) -> None:
        """Declare a classifier `key.weight [classes, ...]`, `key.bias` that the features do not need."""
        self.heads |= {f"{key}.weight": shape, f"{key}.bias": shape[:1]}

    def input(self, name: str, *shape: int | str, integer: bool = False) -> str:
        return self.graph.input(name, shape, TensorProto.INT64 if integer else TensorProto.FLOAT)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return "" if self._state is None else self.graph.op(kind, *inputs, **attributes)

    def constant(self, value: Array | np.generic) -> str:
        return "" if self._state is None else self.graph.constant(value)

    def pool(self, kind: str, x: str, kernel: Sequence[int], stride: Sequence[int], **rest: Any) -> str:
        return "" if self._state is None else self.graph.pool(kind, x, kernel, stride, **rest)

    def conv(
        self,
        x: str,
        key: str,
        shape: Shape,
        *,
        norm: str | None = None,
        epsilon: float = 1e-5,
        bias: bool = False,
        relu: bool = True,
        stride: int | Sequence[int] = 1,
        pad: int | Sequence[int] | str = 0,
        groups: int = 1,
    ) -> str:
        """Convolution with the batch normalisation `norm` after it folded in, then a ReLU if `relu`."""
        weight = self.tensor(f"{key}.weight", *shape)
        shift: Array | None = self.tensor(f"{key}.bias", shape[0]) if bias else None
        if norm is not None:
            scale, offset, mean, variance = self._norm(norm, shape[0])
            if self._state is not None:
                weight, shift = fold_batch_norm(weight, shift, mean, variance, scale, offset, epsilon)
        if self._state is None:
            return ""
        y = self.graph.conv(x, weight, shift, stride=stride, pad=pad, groups=groups)
        return self.graph.op("Relu", y) if relu else y

    def norm(self, x: str, key: str, channels: int, *, epsilon: float = 1e-5) -> str:
        """Batch normalisation that follows no convolution, then a ReLU."""
        scale, shift, mean, variance = self._norm(key, channels)
        constants = [self.constant(array) for array in (scale, shift, mean, variance)]
        return self.op("Relu", self.op("BatchNormalization", x, *constants, epsilon=epsilon))

    def linear(self, x: str, key: str, out: int, into: int, *, bias: bool = True) -> str:
        """`x @ weight.T + bias`."""
        weight = self.tensor(f"{key}.weight", out, into)
        shift = self.tensor(f"{key}.bias", out) if bias else None
        return "" if self._state is None else self.graph.linear(x, weight, shift)

    def linears(self, x: str, keys: Sequence[str], out: int, into: int) -> list[str]:
        """Several linear layers of one input and one size, computed as one product."""
        parts = [(self.tensor(f"{key}.weight", out, into), self.tensor(f"{key}.bias", out)) for key in keys]
        if self._state is None:
            return [""] * len(keys)
        weight, bias = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return self.graph.split(self.graph.linear(x, weight, bias), len(keys))

    def affine(self, x: str, weight: Array, bias: Array) -> str:
        """`x @ weight.T + bias` with a part of a tensor."""
        return "" if self._state is None else self.graph.linear(x, weight, bias)

    def convolve(self, x: str, weight: Array, bias: Array) -> str:
        """A convolution with a weight made of several tensors."""
        return "" if self._state is None else self.graph.conv(x, weight, bias)

    def norm_factors(self, key: str, channels: int, *, epsilon: float = 1e-5) -> tuple[Array, Array]:
        """The batch normalisation under `key` as `scale · x + shift`."""
        scale, shift, mean, variance = self._norm(key, channels)
        scale = scale / np.sqrt(variance + epsilon)
        return scale, shift - mean * scale

    def rows(self, table: Array, ids: str) -> str:
        """The rows of a table with these numbers."""
        return "" if self._state is None else self.graph.rows(table, ids)

    def layer_norm(self, x: str, key: str, width: int, epsilon: float) -> str:
        scale = self.constant(self.tensor(f"{key}.weight", width))
        shift = self.constant(self.tensor(f"{key}.bias", width))
        return self.op("LayerNormalization", x, scale, shift, epsilon=epsilon)

    def mean(self, x: str, *axes: int, keep: bool = False) -> str:
        return self.op("ReduceMean", x, self.constant(np.array(axes, np.int64)), keepdims=int(keep))

    def reshape(self, x: str, *shape: int) -> str:
        """Reshape; 0 keeps a dimension, -1 takes what is left."""
        return self.op("Reshape", x, self.constant(np.array(shape, np.int64)))

    def finish(self, outputs: Mapping[str, str]) -> Any:
        return None if self._state is None else self.graph.finish(outputs)

    def _norm(self, key: str, channels: int) -> tuple[Array, Array, Array, Array]:
        scale, shift, mean, variance = (
            self.tensor(f"{key}.{part}", channels)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return scale, shift, mean, variance


NetworkDefinition = Callable[[NetBuilder], Mapping[str, str]]
"""Declares the input of a network, adds its layers, and returns its outputs by public name."""


def weight_shapes(network: NetworkDefinition) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """The shape of every weight a network uses, and of its unused classifier."""
    net = NetBuilder("shapes")
    network(net)
    return net.shapes, net.heads


def build_onnx(
    name: str,
    network: NetworkDefinition,
    state: Mapping[str, Array],
    sidecar: Path | None = None,
    precision: Precision = "fp32",
) -> Any:
    """The ONNX model of a network with these weights, checked beforehand by `runtime.nets.checkpoint`."""
    net = NetBuilder(name, state, sidecar, precision)
    return net.finish(network(net))
