"""A network without PReLU layers computes what it did with them."""

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from wordreel.experts.faces import without_prelu
from wordreel.runtime.sessions import Network


def test_the_same_outputs_without_prelu(tmp_path):
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(size=(4, 3, 3, 3)),
        "a": rng.uniform(-0.5, 1.5, size=(4, 1, 1)),  # also negative, and above 1
        "b": rng.uniform(0, 1, size=(1,)),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("PRelu", ["c", "a"], ["p"]),
        helper.make_node("PRelu", ["p", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "prelu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 9])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    path = tmp_path / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
    x = rng.normal(size=(2, 3, 8, 9)).astype(np.float32)
    plain = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    changed = without_prelu(path)
    assert not any(node.op_type == "PRelu" for node in onnx.load_from_string(changed).graph.node)
    np.testing.assert_allclose(Network(changed)(x=x)["y"], plain, atol=1e-5)
