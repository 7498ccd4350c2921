"""The head of a fine-tuned model over a clip's frames: which frames, and in what batches."""

import numpy as np
import pytest

from wordreel.backbones import tower
from wordreel.backbones.config import BackboneConfig, HeadConfig
from wordreel.backbones.tower import FrameHead, uniform_rows

RNG = np.random.default_rng(0)


@pytest.fixture
def head(tmp_path):
    """The mean of the frames that exist, as a graph."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes = [
        helper.make_node("Cast", ["mask"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["real", "last"], ["column"]),
        helper.make_node("Mul", ["frames", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axis"], ["sums"], keepdims=0),
        helper.make_node("ReduceSum", ["column", "axis"], ["counts"], keepdims=0),
        helper.make_node("Div", ["sums", "counts"], ["vectors"]),
    ]
    graph = helper.make_graph(
        nodes,
        "head",
        [
            helper.make_tensor_value_info("frames", TensorProto.FLOAT, ["n", "t", 4]),
            helper.make_tensor_value_info("mask", TensorProto.BOOL, ["n", "t"]),
        ],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.array([n]), name) for n, name in ((2, "last"), (1, "axis"))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, tmp_path / "head.onnx")
    return FrameHead(HeadConfig(4, frames=5), tmp_path / "head.onnx")


def test_clips_of_any_length_in_batches(head, monkeypatch):
    monkeypatch.setattr(tower, "HEAD_BATCH", 3)
    clips = [RNG.normal(size=(count, 4)).astype(np.float32) for count in (1, 2, 5, 6, 40, 3, 1)]
    expected = [clip[uniform_rows(len(clip), 5)].mean(axis=0) for clip in clips]
    np.testing.assert_allclose(head(clips), expected, atol=1e-6)


def test_rows_are_evenly_spaced():
    assert uniform_rows(1, 12) == [0]
    assert uniform_rows(12, 12) == list(range(12))
    assert uniform_rows(25, 4) == [0, 8, 16, 24]


def test_a_head_gives_vectors_and_texts_their_length():
    assert BackboneConfig("plain", dim=512).vector_dim == 512
    tuned = BackboneConfig("tuned", dim=512, head=HeadConfig(1024, 12, 2.5))
    assert tuned.vector_dim == 1024
    assert BackboneConfig.from_json(tuned.to_json()) == tuned
