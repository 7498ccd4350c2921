"""A tiny image tower of CLIP as exporters write it, by their names; in float, or with products in 8 bits."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, LAYERS, INNER, PATCH, SIZE = 16, 2, 2, 32, 56, 224
TOKENS = (SIZE // PATCH) ** 2 + 1


class _Graph:
    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def random(self, name, *shape, scale=1.0):
        return self.constant(name, (self.rng.normal(size=shape) * scale).astype(np.float32))

    def op(self, kind, name, *inputs, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [f"{name}_output_0"], name, **attributes))
        return f"{name}_output_0"

    def norm(self, x, name):
        scale = self.constant(f"{name}.weight", self.rng.uniform(0.5, 2, WIDTH).astype(np.float32))
        return self.op(
            "LayerNormalization", f"/{name}", x, scale, self.random(f"{name}.bias", WIDTH, scale=0.1)
        )

    def linear(self, x, name, into, out):
        matrix = self.random(f"onnx::MatMul_{len(self.constants)}", into, out, scale=into**-0.5)
        y = self.op("MatMul", f"/{name}/MatMul", x, matrix)
        return self.op("Add", f"/{name}/Add", self.random(f"{name}.bias", out, scale=0.1), y)

    def split(self, x, name):
        shape = self.constant(f"{name}.heads", np.array([0, TOKENS, HEADS, WIDTH // HEADS]))
        return self.op("Transpose", f"{name}/t", self.op("Reshape", f"{name}/r", x, shape), perm=[0, 2, 1, 3])


def tiny_tower(path: Path, dim: int = 512, seed: int = 0) -> Path:
    """Write the tower in float."""
    g = _Graph(seed)
    kernel = g.random("patch", WIDTH, 3, PATCH, PATCH, scale=0.02)
    x = g.op("Conv", "/patch", "pixel_values", kernel, strides=[PATCH, PATCH], kernel_shape=[PATCH, PATCH])
    x = g.op("Reshape", "/flat", x, g.constant("flat", np.array([0, WIDTH, TOKENS - 1])))
    x = g.op("Transpose", "/rows", x, perm=[0, 2, 1])
    first = g.op("Slice", "/one", x, *(g.constant(f"c{k}", np.array([k])) for k in (0, 1)), "c1")
    first = g.op("Mul", "/none", first, g.constant("zero", np.float32(0)))
    first = g.op("Add", "/class", first, g.random("class", WIDTH))
    x = g.op("Concat", "/tokens", first, x, axis=1)
    x = g.norm(g.op("Add", "/places", x, g.random("positions", TOKENS, WIDTH, scale=0.3)), "pre")
    for number in range(LAYERS):
        x = _layer(g, x, f"vision_model/encoder/layers.{number}")
    x = g.norm(g.op("Gather", "/first", x, g.constant("at", np.array(0)), axis=1), "post")
    projection = g.random("onnx::MatMul_last", WIDTH, dim, scale=0.3)
    g.nodes.append(helper.make_node("MatMul", [x, projection], ["image_embeds"], "/visual_projection/MatMul"))
    g.nodes.append(helper.make_node("Identity", [x], ["pooled"]))
    shape = ["batch", 3, SIZE, SIZE]
    graph = helper.make_graph(
        g.nodes,
        "tower",
        [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor_value_info("image_embeds", TensorProto.FLOAT, ["batch", dim]),
            helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", WIDTH]),
        ],
        g.constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def _layer(g, x, name):
    y = g.norm(x, f"{name}/layer_norm1")
    q, k, v = (
        g.split(g.linear(y, f"{name}/self_attn/{part}_proj", WIDTH, WIDTH), f"/{name}/{part}")
        for part in "qkv"
    )
    k = g.op("Transpose", f"/{name}/k_t", k, perm=[0, 1, 3, 2])
    weights = g.op("Softmax", f"/{name}/softmax", g.op("MatMul", f"/{name}/self_attn/MatMul", q, k), axis=-1)
    y = g.op("MatMul", f"/{name}/self_attn/MatMul_1", weights, v)
    y = g.op("Transpose", f"/{name}/join", y, perm=[0, 2, 1, 3])
    y = g.op("Reshape", f"/{name}/width", y, g.constant(f"{name}.width", np.array([0, TOKENS, WIDTH])))
    x = g.op("Add", f"/{name}/Add", x, g.linear(y, f"{name}/self_attn/out_proj", WIDTH, WIDTH))
    y = g.linear(g.norm(x, f"{name}/layer_norm2"), f"{name}/mlp/fc1", WIDTH, INNER)
    gate = g.op("Mul", f"/{name}/mlp/gate", y, g.constant(f"{name}.gate", np.float32(1.702)))
    y = g.op("Mul", f"/{name}/mlp/gelu", y, g.op("Sigmoid", f"/{name}/mlp/sigmoid", gate))
    return g.op("Add", f"/{name}/Add_1", x, g.linear(y, f"{name}/mlp/fc2", INNER, WIDTH))


def in_eight_bits(path: Path, out: Path) -> Path:
    """The tower as it is published on the package index, by onnxruntime's own tool."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    kinds = {"weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul"]}
    quantize_dynamic(str(path), str(out), per_channel=True, **kinds)
    return out
