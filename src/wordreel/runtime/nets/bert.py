"""A BERT sentence encoder (Devlin et al., 2019) from its published weights, pooled as sentence-BERT does.

Embeddings of token, position and segment 0 are added and normalised; each layer is

    x ← LN(x + attention(x)),   x ← LN(x + W₂ gelu(W₁ x + b₁) + b₂)

with attention(x) = softmax(q kᵀ / √d + mask) v per head and the exact (erf) GELU. The sentence is the mean
over its unmasked tokens as a unit vector: `x̄ = Σₜ mₜ xₜ / max(Σₜ mₜ, 1e-9)`, then `x̄ / max(‖x̄‖, 1e-12)`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from wordreel.runtime.nets.graph import Graph

Weights = Mapping[str, NDArray[Any]]

CONVERTER_VERSION = 1
EPSILON = 1e-12
HEADS = 12
MASKED = -1e9  # added to the attention logits of padding


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` and copy `tokenizer.json`."""
    import onnx

    from wordreel.runtime.torch_files.torch_file import read_state_dict

    by_name = {path.name: path for path in files.values()}
    onnx.save(build(read_state_dict(by_name["model.safetensors"]), HEADS), out / "network.onnx")
    shutil.copyfile(by_name["tokenizer.json"], out / "tokenizer.json")


def build(weights: Weights, heads: int) -> Any:
    """The model: `input_ids`, `attention_mask [n, tokens]` int64 to unit `sentences [n, dim]` float32."""
    from onnx import TensorProto

    from wordreel.runtime.nets.graph import Graph

    graph = Graph("bert")
    ids = graph.input("input_ids", ("n", "tokens"), TensorProto.INT64)
    mask = graph.input("attention_mask", ("n", "tokens"), TensorProto.INT64)
    attended = graph.op("Cast", mask, to=TensorProto.FLOAT)
    x = _embed(graph, weights, ids)
    masked = graph.op("Sub", graph.constant(np.float32(1)), attended)
    hidden = graph.op("Mul", masked, graph.constant(np.float32(MASKED)))
    hidden = graph.op("Unsqueeze", hidden, graph.constant(np.array([1, 2])))  # [n, 1, 1, tokens]
    for number in range(_layers(weights)):
        x = _layer(graph, weights, f"encoder.layer.{number}.", x, hidden, heads)
    return graph.finish({"sentences": _unit(graph, _mean(graph, x, attended))})


def _embed(graph: Graph, weights: Weights, ids: str) -> str:
    words = graph.op("Gather", graph.constant(_of(weights, "embeddings.word_embeddings.weight")), ids)
    places = _of(weights, "embeddings.position_embeddings.weight")
    segment = _of(weights, "embeddings.token_type_embeddings.weight")[0]
    tokens = graph.op("Shape", ids, start=1, end=2)
    first = graph.op(
        "Slice",
        graph.constant(places + segment),
        graph.constant(np.array([0])),
        tokens,
        graph.constant(np.array([0])),
    )
    return _norm(graph, weights, "embeddings.LayerNorm", graph.op("Add", words, first))


def _layer(graph: Graph, weights: Weights, at: str, x: str, hidden: str, heads: int) -> str:
    attended = _linear(
        graph, weights, f"{at}attention.output.dense", _attention(graph, weights, at, x, hidden, heads)
    )
    x = _norm(graph, weights, f"{at}attention.output.LayerNorm", graph.op("Add", x, attended))
    wide = _gelu(graph, _linear(graph, weights, f"{at}intermediate.dense", x))
    narrow = _linear(graph, weights, f"{at}output.dense", wide)
    return _norm(graph, weights, f"{at}output.LayerNorm", graph.op("Add", x, narrow))


def _attention(graph: Graph, weights: Weights, at: str, x: str, hidden: str, heads: int) -> str:
    width = len(_of(weights, f"{at}attention.self.query.weight")) // heads
    split = graph.constant(np.array([0, 0, heads, width]))
    parts = {}
    for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        flat = _linear(graph, weights, f"{at}attention.self.{name}", x)
        parts[name] = graph.op("Transpose", graph.op("Reshape", flat, split), perm=order)
    products = graph.op("MatMul", parts["query"], parts["key"])
    scaled = graph.op("Mul", products, graph.constant(np.float32(1 / np.sqrt(width))))
    shares = graph.op("Softmax", graph.op("Add", scaled, hidden), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", shares, parts["value"]), perm=[0, 2, 1, 3])
    return graph.op("Reshape", mixed, graph.constant(np.array([0, 0, heads * width])))


def _mean(graph: Graph, x: str, attended: str) -> str:
    attended = graph.op("Unsqueeze", attended, graph.constant(np.array([2])))
    along = graph.constant(np.array([1]))
    total = graph.op("ReduceSum", graph.op("Mul", x, attended), along, keepdims=0)
    count = graph.op(
        "Max", graph.op("ReduceSum", attended, along, keepdims=0), graph.constant(np.float32(1e-9))
    )
    return graph.op("Div", total, count)


def _unit(graph: Graph, x: str) -> str:
    length = graph.op("ReduceL2", x, graph.constant(np.array([-1])), keepdims=1)
    return graph.op("Div", x, graph.op("Max", length, graph.constant(np.float32(1e-12))))


def _gelu(graph: Graph, x: str) -> str:
    """`x (1 + erf(x / √2)) / 2`"""
    erf = graph.op("Erf", graph.op("Mul", x, graph.constant(np.float32(np.sqrt(0.5)))))
    half = graph.op("Mul", x, graph.constant(np.float32(0.5)))
    return graph.op("Mul", half, graph.op("Add", erf, graph.constant(np.float32(1))))


def _norm(graph: Graph, weights: Weights, at: str, x: str) -> str:
    scale, shift = _of(weights, f"{at}.weight"), _of(weights, f"{at}.bias")
    return graph.op(
        "LayerNormalization", x, graph.constant(scale), graph.constant(shift), axis=-1, epsilon=EPSILON
    )


def _linear(graph: Graph, weights: Weights, at: str, x: str) -> str:
    return graph.linear(x, _of(weights, f"{at}.weight"), _of(weights, f"{at}.bias"))


def _of(weights: Weights, name: str) -> NDArray[np.float32]:
    return weights[name].astype(np.float32)


def _layers(weights: Weights) -> int:
    return 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
