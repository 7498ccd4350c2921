"""A text tower of a few words and a model around it: each word is a direction of its own."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from wordreel.models.joint.adapter import write_adapter
from wordreel.models.joint.model import Joint
from wordreel.models.joint.text_tower import DIM, NETWORK, TOKENIZER
from wordreel.runtime.store import WeightStore

WORDS = ("[UNK]", "a", "dog", "beach", "guitar", "playing", "kitchen", "airport", "terminal", "hello", "bus")


def direction(*words):
    """The unit vector of a text of these words."""
    row = np.zeros(DIM, np.float32)
    row[[WORDS.index(word) for word in words]] = 1
    return row / np.linalg.norm(row)


def write_tower(folder):
    """Write both files of the tower: the mean of one-hot words, as a unit vector."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.eye(len(WORDS), DIM, dtype=np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Cast", ["attention_mask"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["real", "last"], ["column"]),
        helper.make_node("Mul", ["words", "column"], ["shown"]),
        helper.make_node("ReduceSum", ["shown", "middle"], ["sum"], keepdims=0),
        helper.make_node("ReduceL2", ["sum", "middle"], ["length"], keepdims=1),
        helper.make_node("Div", ["sum", "length"], ["embedding"]),
    ]
    initial = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "middle"),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", DIM])]
    graph = helper.make_graph(nodes, "tower", inputs, outputs, initial)
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(network, str(folder / NETWORK))
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / TOKENIZER))
    return folder


def tiny_joint(folder, card=None):
    """A model with this tower and an adapter that changes nothing."""
    write_tower(folder)
    write_adapter(folder / "model.safetensors", np.eye(DIM), np.zeros(DIM), card or {"data": "none"})
    return Joint(WeightStore(folder / "weights"), folder / "model.safetensors", folder)
