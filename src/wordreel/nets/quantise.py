"""A network whose matrix products are computed in 8 bits, made from one that computes in 32."""

from __future__ import annotations

from typing import Any

import numpy as np

from wordreel.nets.graph import LEVELS, quantised

DOMAIN = "com.microsoft"  # operators that onnxruntime has beside ONNX's own


def quantise_products(network: bytes) -> bytes:
    """A network with every product by a constant matrix in whole numbers.

    A matrix has `LEVELS` steps to each side, one scale for each output. Of what it is multiplied by,
    onnxruntime finds the scale in each run, one for the whole batch: for results that do not depend on their
    company, run such a network on one item at a time.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load_from_string(network)
    graph = model.graph
    matrices = {one.name: one for one in graph.initializer if len(one.dims) == 2}
    nodes, added = [], []
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in matrices:
            nodes.append(node)
            continue
        name = node.input[1]
        rounded, steps = quantised(numpy_helper.to_array(matrices[name]).T, LEVELS)
        whole, step = f"{name}_whole", f"{name}_step"
        added += [_tensor(rounded.T, whole), _tensor(steps[:, 0], step)]
        inputs = [node.input[0], whole, step]
        nodes.append(helper.make_node("DynamicQuantizeMatMul", inputs, list(node.output), domain=DOMAIN))
    used = {name for node in nodes for name in node.input}
    kept = [one for one in graph.initializer if one.name in used]
    for field, values in ((graph.node, nodes), (graph.initializer, [*kept, *added])):
        del field[:]
        field.extend(values)
    del graph.value_info[:]  # the types of what is no longer there
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return bytes(model.SerializeToString())


def _tensor(array: Any, name: str) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.ascontiguousarray(array), name)
