"""Published networks, run as they are: their inputs, outputs and batches."""

import numpy as np
import pytest
from tests.tiny_backbone import DIM, random_weights, write_graphs

from wordreel.backbones.tower import Tower
from wordreel.errors import WeightsError

RNG = np.random.default_rng(0)
PIXELS = RNG.normal(size=(21, 3, 32, 32)).astype(np.float32)
IDS = RNG.integers(0, 500, (21, 5))
MASK = np.arange(5) < RNG.integers(1, 6, (21, 1))


def slow_pictures(seed=0):
    matrix, _ = random_weights(np.random.default_rng(seed))
    quarters = PIXELS.reshape(21, 3, 2, 16, 2, 16).mean(axis=(3, 5)).reshape(21, -1)
    return quarters @ matrix


def slow_texts(masked):
    _, tokens = random_weights(np.random.default_rng(0))
    return np.stack(
        [tokens[ids[mask] if masked else ids].mean(axis=0) for ids, mask in zip(IDS, MASK, strict=True)]
    )


def towers(tmp_path, **options):
    write_graphs(tmp_path / "v.onnx", tmp_path / "t.onnx", **options)
    return Tower(tmp_path / "v.onnx"), Tower(tmp_path / "t.onnx")


@pytest.mark.parametrize("batch", [None, 1, 4])
@pytest.mark.parametrize("masked", [True, False])
def test_any_batch_gives_what_each_item_gives(tmp_path, batch, masked):
    image, text = towers(tmp_path, batch=batch, masked=masked, length=None if masked else 5)
    np.testing.assert_allclose(image.pictures(PIXELS), slow_pictures(), atol=1e-5)
    np.testing.assert_allclose(text.texts(IDS, MASK), slow_texts(masked), atol=1e-5)
    assert (text.masked, text.length) == (masked, None if masked else 5)


def test_other_outputs_and_half_precision(tmp_path):
    image, text = towers(tmp_path, half=True, outputs=("pooler_output", "sentence"))
    np.testing.assert_allclose(image.pictures(PIXELS), slow_pictures(), atol=1e-2)
    assert image.pictures(PIXELS).dtype == np.float32
    assert text.texts(IDS, MASK).shape == (21, DIM)


def test_what_is_no_such_network(tmp_path):
    from onnx import TensorProto, helper, save

    (tmp_path / "a.onnx").write_bytes(b"noise")
    with pytest.raises(WeightsError, match=r"a.onnx is not a network that can be run"):
        Tower(tmp_path / "a.onnx")

    def write(inputs, shape):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in inputs]
        nodes = [helper.make_node("Identity", [inputs[0]], ["out"])]
        graph = helper.make_graph(
            nodes, "g", values, [helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        save(model, tmp_path / "b.onnx")
        return Tower(tmp_path / "b.onnx")

    with pytest.raises(WeightsError, match="has the inputs pixels, sizes, which are not known"):
        write(["pixels", "sizes"], ["n", 3])
    with pytest.raises(WeightsError, match="has the outputs out, none of them an embedding"):
        write(["pixels"], ["n", 3, 4, 4])
