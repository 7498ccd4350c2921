"""A trained tower as the files that ship: `text_tower.onnx` with weights in 8 bits, `tokenizer.json`, and
`joint.safetensors` with the adapter.

Matrices become `MatMulNBits` products of 8 bits in blocks of 128 inputs, the table of words bytes with a
scale for each word; onnxruntime runs the file as it is.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from tower_training import Tower

from wordreel.models.joint.adapter import FILE, write_adapter
from wordreel.models.joint.text_tower import MAX_TOKENS, NETWORK, TOKENIZER

BLOCK = 128
OPSET = 17


class _Query(nn.Module):
    """The tower's text side with an integer mask, positions only as far as texts go."""

    def __init__(self, tower: Tower) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.tower.text(input_ids, attention_mask > 0)


def export(tower: Tower, tokenizer: Any, card: dict[str, Any], folder: Path) -> None:
    """Write the three files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    model = in_eight_bits(to_onnx(tower))
    onnx.save(model, folder / NETWORK)
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    weight, bias = (p.detach().numpy() for p in (tower.adapter.weight, tower.adapter.bias))
    write_adapter(folder / FILE.name, weight, bias, card)


def to_onnx(tower: Tower) -> onnx.ModelProto:
    """Return the text side as torch exports it, in float32."""
    places = tower.network.embeddings.position_embeddings
    places.weight.data = places.weight.data[:MAX_TOKENS].clone()
    ids, mask = torch.arange(9).repeat(2, 1), torch.ones(2, 9, dtype=torch.long)
    file: Any = io.BytesIO()  # which the exporter takes, though its annotation does not say so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the exporter's successor, which needs another package
        torch.onnx.export(
            _Query(tower).eval(),
            (ids, mask),
            file,
            input_names=["input_ids", "attention_mask"],
            output_names=["embedding"],
            dynamic_axes={
                "input_ids": {0: "n", 1: "tokens"},
                "attention_mask": {0: "n", 1: "tokens"},
                "embedding": {0: "n"},
            },
            opset_version=OPSET,
            dynamo=False,
        )
    return onnx.load_model_from_string(file.getvalue())


def in_eight_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its matrices and its table of words in bytes."""
    graph = model.graph
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in list(graph.node):
        matrix = held.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if matrix is not None and matrix.ndim == 2:
            turned = any(a.name == "transB" and a.i for a in node.attribute)
            _exchange_product(graph, node, matrix.T if turned else matrix)
        elif node.op_type == "Gather" and held.get(node.input[0], np.zeros(0)).ndim == 2:
            _exchange_table(graph, node, held[node.input[0]])
    used = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def _exchange_product(graph: onnx.GraphProto, node: onnx.NodeProto, matrix: np.ndarray) -> None:
    """Turn a product with `matrix [inputs, outputs]` into one of bytes; a `Gemm` keeps its bias."""
    inputs, outputs = matrix.shape
    blocks = matrix.T.reshape(outputs, -1, BLOCK)
    scales = np.abs(blocks).max(axis=-1) / 127
    scales[scales == 0] = 1
    values = (np.round(blocks / scales[..., None]) + 128).astype(np.uint8)
    name = node.output[0]
    graph.initializer.append(numpy_helper.from_array(values, f"{name}.bytes"))
    graph.initializer.append(numpy_helper.from_array(scales.astype(np.float32), f"{name}.scales"))
    bias = ["", "", node.input[2]] if node.op_type == "Gemm" else []
    new = helper.make_node(
        "MatMulNBits",
        [node.input[0], f"{name}.bytes", f"{name}.scales", *bias],
        list(node.output),
        domain="com.microsoft",
        K=inputs,
        N=outputs,
        bits=8,
        block_size=BLOCK,
        accuracy_level=4,
    )
    node.CopyFrom(new)


def _exchange_table(graph: onnx.GraphProto, node: onnx.NodeProto, table: np.ndarray) -> None:
    """Turn a lookup in `table [words, dim]` into one in bytes, times the word's scale."""
    scales = np.abs(table).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    graph.initializer.append(numpy_helper.from_array(np.round(table / scales).astype(np.int8), "words.bytes"))
    graph.initializer.append(numpy_helper.from_array(scales.astype(np.float16), "words.scales"))
    ids, out, at = node.input[1], node.output[0], list(graph.node).index(node)
    graph.node.remove(node)
    for part in ("bytes", "scales"):
        graph.node.insert(at, helper.make_node("Cast", [f"{part}.found"], [part], to=TensorProto.FLOAT))
        graph.node.insert(at, helper.make_node("Gather", [f"words.{part}", ids], [f"{part}.found"]))
    graph.node.insert(at + 4, helper.make_node("Mul", ["bytes", "scales"], [out]))
