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

from wordreel.runtime.nets.graph import Graph, fold_batch_norm
from wordreel.types import Array

Shape = tuple[int, ...]


class _NoGraph:
    """Takes the layers of a network that only declares its weights."""

    def __getattr__(self, name: str) -> Callable[..., str]:
        return lambda *arguments, **options: ""


class NetBuilder:
    """A graph under construction, the `shapes` it needs from a checkpoint, and the unused `heads`.

    `op`, `constant` and `pool` are those of the graph.
    """

    def __init__(
        self, name: str, state: Mapping[str, Array] | None = None, sidecar: Path | None = None
    ) -> None:
        self.graph: Any = _NoGraph() if state is None else Graph(name, sidecar)
        self.op: Callable[..., str] = self.graph.op
        self.constant: Callable[..., str] = self.graph.constant
        self.pool: Callable[..., str] = self.graph.pool
        self.shapes: dict[str, Shape] = {}
        self.heads: dict[str, Shape] = {}
        self._state = state

    def tensor(self, key: str, *shape: int) -> Array:
        """Return the weights under `key`; without weights, a placeholder that takes no memory."""
        self.shapes[key] = shape
        if self._state is None:
            return np.broadcast_to(np.float32(1.0), shape)
        return np.asarray(self._state[key], dtype=np.float32)

    def head(self, key: str, *shape: int) -> None:
        """Declare a classifier `key.weight [classes, ...]`, `key.bias` that the features do not need."""
        self.heads |= {f"{key}.weight": shape, f"{key}.bias": shape[:1]}

    def input(self, name: str, *shape: int | str) -> str:
        """Declare an input of floats; a string is a dimension of any size."""
        return str(self.graph.input(name, shape))

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
        """Add a convolution with the batch normalisation `norm` after it folded in, and a ReLU if `relu`."""
        weight = self.tensor(f"{key}.weight", *shape)
        shift: Array | None = self.tensor(f"{key}.bias", shape[0]) if bias else None
        if norm is not None:
            scale, offset, mean, variance = self._norm(norm, shape[0])
            if self._state is not None:
                weight, shift = fold_batch_norm(weight, shift, mean, variance, scale, offset, epsilon)
        y = str(self.graph.conv(x, weight, shift, stride=stride, pad=pad, groups=groups))
        return self.op("Relu", y) if relu else y

    def norm(self, x: str, key: str, channels: int, *, epsilon: float = 1e-5) -> str:
        """Add a batch normalisation that follows no convolution, then a ReLU."""
        constants = [self.constant(array) for array in self._norm(key, channels)]
        return self.op("Relu", self.op("BatchNormalization", x, *constants, epsilon=epsilon))

    def linear(self, x: str, key: str, out: int, into: int) -> str:
        """Add `x @ weight.T + bias`."""
        weight, bias = self.tensor(f"{key}.weight", out, into), self.tensor(f"{key}.bias", out)
        return str(self.graph.linear(x, weight, bias))

    def mean(self, x: str, *axes: int, keep: bool = False) -> str:
        """Add a mean over axes."""
        return self.op("ReduceMean", x, self.constant(np.array(axes, np.int64)), keepdims=int(keep))

    def _norm(self, key: str, channels: int) -> tuple[Array, Array, Array, Array]:
        scale, shift, mean, variance = (
            self.tensor(f"{key}.{part}", channels)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return scale, shift, mean, variance


NetworkDefinition = Callable[[NetBuilder], Mapping[str, str]]
"""Declares the input of a network, adds its layers, and returns its outputs by public name."""


def weight_shapes(network: NetworkDefinition) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """Return the shape of every weight that a network uses, and of its unused classifier."""
    net = NetBuilder("shapes")
    network(net)
    return net.shapes, net.heads


def build_onnx(
    name: str, network: NetworkDefinition, state: Mapping[str, Array], sidecar: Path | None = None
) -> Any:
    """Return the ONNX model of a network with these weights, which `torch_file.check` has checked."""
    net = NetBuilder(name, state, sidecar)
    return net.graph.finish(network(net))
