"""EfficientNet-Lite2 (Tan and Le, 2019; the variant without squeeze-and-excitation) from its weights.

Stem, inverted bottlenecks, head, mean over the picture:

    block(x) = x? + BN(project(relu6(BN(depthwise(relu6(BN(expand(x))))))))

with the sum only where stride is 1 and the width stays. The weights were trained in TensorFlow, so padding
is TensorFlow's "SAME". Pictures go in as bytes: `(rgb − 127) / 128` is
part of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from wordreel.runtime.nets.graph import Graph

Weights = Mapping[str, NDArray[Any]]

HALVING = frozenset({1, 4, 7, 15})
"""Blocks of stride 2: the first of stages 2, 3, 4 and 6, whose depths are 1, 3, 3, 4, 4, 5, 1."""


def build(folded: Weights, halving: Collection[int] = HALVING) -> Any:
    """Return the model: `images [n, height, width, 3]` uint8 RGB to `features [n, 1280]` float32.

    `folded` holds the kernel and bias of each convolution, with the batch norm after it folded in.
    """
    from onnx import TensorProto

    from wordreel.runtime.nets.graph import Graph

    graph = Graph("efficientnet-lite")
    images = graph.input("images", ("n", "height", "width", 3), TensorProto.UINT8)
    centred = graph.op("Sub", graph.op("Cast", images, to=TensorProto.FLOAT), graph.constant(np.float32(127)))
    scaled = graph.op("Div", centred, graph.constant(np.float32(128)))
    x = graph.op("Transpose", scaled, perm=[0, 3, 1, 2])
    x = _relu6(graph, _conv(graph, x, folded, "_conv_stem", stride=2))
    blocks = {int(name.split(".")[1]) for name in folded if name.startswith("_blocks.")}
    for number in sorted(blocks):
        x = _block(graph, x, folded, f"_blocks.{number}.", 2 if number in halving else 1)
    x = _relu6(graph, _conv(graph, x, folded, "_conv_head"))
    return graph.finish({"features": graph.op("Flatten", graph.op("GlobalAveragePool", x))})


def _block(graph: Graph, x: str, folded: Weights, at: str, stride: int) -> str:
    y = x
    if f"{at}_expand_conv.weight" in folded:
        y = _relu6(graph, _conv(graph, y, folded, f"{at}_expand_conv"))
    depthwise = folded[f"{at}_depthwise_conv.weight"]
    y = _conv(graph, y, folded, f"{at}_depthwise_conv", stride=stride, groups=len(depthwise))
    y = _conv(graph, _relu6(graph, y), folded, f"{at}_project_conv")
    first = folded.get(f"{at}_expand_conv.weight", depthwise)
    width_in = first.shape[1] if first is not depthwise else len(depthwise)
    keeps = stride == 1 and width_in == len(folded[f"{at}_project_conv.weight"])
    return graph.op("Add", y, x) if keeps else y


def _conv(graph: Graph, x: str, folded: Weights, conv: str, stride: int = 1, groups: int = 1) -> str:
    kernel, bias = folded[f"{conv}.weight"], folded[f"{conv}.bias"]
    return graph.conv(x, kernel, bias, stride=stride, pad="SAME", groups=groups)


def _relu6(graph: Graph, x: str) -> str:
    return graph.op("Clip", x, graph.constant(np.float32(0)), graph.constant(np.float32(6)))
