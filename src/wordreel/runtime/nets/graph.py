"""A small builder of ONNX graphs: a network is written once, as a function from published weights to a graph.

Every network here runs in onnxruntime, so searching needs no training framework, and a weight file is
read once, converted, and never unpickled again. Intermediate values are numbered in order, so the
same weights always give the same file.

>>> import numpy as np
>>> graph = Graph("twice")
>>> x = graph.input("x", ("n", 2))
>>> model = graph.finish({"y": graph.op("Mul", x, graph.constant(np.float32(2.0)))})
>>> [output.name for output in model.graph.output]
['y']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.shape_inference
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from wordreel.types import Array

OPSET = 18
IR_VERSION = 9  # what opset 18 shipped with: readable by every onnxruntime we support


SMALL = 1024  # bytes; shapes, axes and the like always stay in the model itself


class Graph:
    """Collects nodes and weights; `finish` makes and checks the model. Values are referred to by name.

    A model file cannot hold 2 GiB. With a `sidecar`, weights are appended to that file as they come and the
    model, to be saved in the same folder, only points into it.
    """

    def __init__(self, name: str, sidecar: Path | None = None) -> None:
        self.name = name
        self._sidecar = sidecar
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: list[Any] = []
        self._count = 0

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Declare an input; a string in `shape` is a dimension of any size."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def constant(self, value: Array | np.generic) -> str:
        """Put an array into the graph."""
        name = self._fresh("c")
        value = np.asarray(value)  # ascontiguousarray alone would make a vector of a number
        whole = value if value.flags.c_contiguous else np.ascontiguousarray(value)
        if self._sidecar is None or whole.nbytes < SMALL:
            self._weights.append(numpy_helper.from_array(whole, name))
        else:
            self._weights.append(_append(self._sidecar, whole, name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add any ONNX operator with one output; returns the output's name."""
        name = self._fresh(kind.lower())
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def conv(
        self,
        x: str,
        weight: Array,
        bias: Array | None = None,
        *,
        stride: int | Sequence[int] = 1,
        pad: int | Sequence[int] | str = 0,
        groups: int = 1,
    ) -> str:
        """Add a convolution in any number of dimensions, `weight [out, in / groups, *kernel]`.

        `pad` is one number, one number per dimension, begin-and-end numbers (twice as many), or "SAME"
        for TensorFlow's rule (padding depends on the input size, the odd pixel goes at the end).
        """
        dims = weight.ndim - 2
        inputs = [x, self.constant(weight.astype(np.float32))]
        if bias is not None:
            inputs.append(self.constant(bias.astype(np.float32)))
        return self.op(
            "Conv",
            *inputs,
            kernel_shape=list(weight.shape[2:]),
            strides=_each(stride, dims),
            group=groups,
            **_padding(pad, dims),
        )

    def pool(
        self,
        kind: str,
        x: str,
        kernel: Sequence[int],
        stride: Sequence[int],
        pad: int | Sequence[int] | str = 0,
        **attributes: Any,
    ) -> str:
        """Add a pooling: `kind` is "MaxPool" or "AveragePool"; padding as in `conv`."""
        return self.op(
            kind,
            x,
            kernel_shape=list(kernel),
            strides=list(stride),
            **_padding(pad, len(kernel)),
            **attributes,
        )

    def linear(self, x: str, weight: Array, bias: Array | None = None) -> str:
        """Add `x @ weight.T + bias` over the last dimension, `weight [out, in]` as PyTorch stores it."""
        y = self.op("MatMul", x, self.constant(weight.T.astype(np.float32)))
        return y if bias is None else self.op("Add", y, self.constant(bias.astype(np.float32)))

    def finish(self, outputs: Mapping[str, str]) -> Any:
        """Return the checked model.

        `outputs` maps the public name of each output to the value it is.
        """
        for public, value in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [public]))
        declared = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, declared, self._weights)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            producer_name="wordreel",
            ir_version=IR_VERSION,
        )
        model = onnx.shape_inference.infer_shapes(model)
        if self._sidecar is None:  # otherwise only the saved file can be checked
            onnx.checker.check_model(model)
        return model

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"


def quantised(matrix: Array, levels: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise rows to whole numbers from −levels to levels.

    Also return the step of each row, `[rows, 1]`.

    >>> rounded, steps = quantised(np.array([[0.5, -1.0], [0.0, 0.0]]), 64)
    >>> (rounded * steps).tolist()
    [[0.5, -1.0], [0.0, 0.0]]
    """
    steps = np.abs(matrix).max(axis=1, keepdims=True).astype(np.float32) / np.float32(levels)
    rounded = np.rint(matrix / np.where(steps > 0, steps, 1))
    return rounded.astype(np.int8), steps


def fold_batch_norm(
    weight: Array,
    bias: Array | None,
    mean: Array,
    variance: Array,
    scale: Array | None,
    shift: Array | None,
    epsilon: float,
) -> tuple[Array, Array]:
    """Fold `scale · (conv(x) − mean) / √(variance + ε) + shift` into the convolution before it."""
    factor = (1.0 if scale is None else scale) / np.sqrt(variance + epsilon)
    folded = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    start = 0.0 if bias is None else bias
    return folded, (start - mean) * factor + (0.0 if shift is None else shift)


def _append(sidecar: Path, value: Array, name: str) -> Any:
    with sidecar.open("ab") as file:
        offset = file.tell()
        file.write(value.data)
    tensor = TensorProto(name=name, dims=value.shape, data_type=helper.np_dtype_to_tensor_dtype(value.dtype))
    tensor.data_location = TensorProto.EXTERNAL
    for key, item in (("location", sidecar.name), ("offset", offset), ("length", value.nbytes)):
        tensor.external_data.add(key=key, value=str(item))
    return tensor


def _each(value: int | Sequence[int], dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value)


def _padding(pad: int | Sequence[int] | str, dims: int) -> dict[str, Any]:
    if isinstance(pad, str):
        return {"auto_pad": f"{pad}_UPPER"}
    sides = _each(pad, dims)
    return {"pads": sides if len(sides) == 2 * dims else sides * 2}
