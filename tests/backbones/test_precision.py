"""Half precision and 8-bit weights."""

import numpy as np
import onnx
import pytest
from tests.backbones import tiny

from wordreel.backbones.precision import precision_loss, samples
from wordreel.backbones.towers import write_towers
from wordreel.runtime.nets.graph import LEVELS, Graph, quantised
from wordreel.runtime.sessions import Network


@pytest.mark.parametrize("name", tiny.ALL)
@pytest.mark.parametrize(("precision", "limit"), [("fp16", 1e-6), ("int8", 3e-3)])
def test_lower_precision_costs_little(name, precision, limit, tmp_path):
    config = tiny.ALL[name]
    state = tiny.random_state(config)
    write_towers(config, state, tmp_path, precision)
    for loss in precision_loss(config, state, tmp_path).values():
        assert 0 < loss.mean <= loss.worst < limit


def test_float32_loses_nothing(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    write_towers(tiny.CLIP, state, tmp_path)
    for loss in precision_loss(tiny.CLIP, state, tmp_path).values():
        assert abs(loss.worst) < 1e-12


def test_an_8_bit_batch_gives_what_single_items_give(tmp_path):
    write_towers(tiny.CLIP, tiny.random_state(tiny.CLIP), tmp_path, "int8")
    frames, ids = samples(tiny.CLIP)
    frames[3] *= 40  # a loud neighbour
    image, text = (Network(tmp_path / f"{name}.onnx") for name in ("image", "text"))
    singles = np.concatenate([image(frames=frame[None])["features"] for frame in frames])
    np.testing.assert_allclose(image(frames=frames)["features"], singles, atol=1e-5)
    singles = np.concatenate([text(ids=row[None])["features"] for row in ids])
    np.testing.assert_allclose(text(ids=ids)["features"], singles, atol=1e-5)


def test_an_integer_product_equals_the_slow_twin(tmp_path):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(5, 33)).astype(np.float32), rng.normal(size=(7, 33)).astype(np.float32)
    x[2], weight[4] = 0.0, 0.0
    x[1], weight[1] = 1.0, 1.0  # the largest sum of all: saturates if a step more were used
    graph = Graph("product", precision="int8")
    model = graph.finish({"y": graph.linear(graph.input("x", ("n", 33)), weight)})
    onnx.save(model, str(tmp_path / "product.onnx"))
    expected = np.zeros((5, 7))
    for row in range(5):
        for column in range(7):
            a = max(np.abs(x[row]).max() / 127, 1e-12)
            b = max(np.abs(weight[column]).max() / LEVELS, 1e-12)
            expected[row, column] = a * b * (np.round(x[row] / a) @ np.round(weight[column] / b))
    y = Network(tmp_path / "product.onnx")(x=x)["y"]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert y[1, 1] == pytest.approx(33.0, rel=1e-6)


def test_files_shrink_with_the_precision(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    state = {key: np.tile(value, 1) for key, value in state.items()}
    rounded, steps = quantised(state["text_model.embeddings.token_embedding.weight"], 127)
    assert rounded.dtype == np.int8
    assert np.abs(rounded).max(axis=1).tolist() == [127] * 50
    assert steps.shape == (50, 1)
    sizes = {}
    for precision in ("fp32", "fp16", "int8"):
        (tmp_path / precision).mkdir()
        write_towers(tiny.CLIP, state, tmp_path / precision, precision)
        graph = onnx.load(tmp_path / precision / "text.onnx").graph
        sizes[precision] = sum(len(weight.raw_data) for weight in graph.initializer if len(weight.dims) == 2)
    assert sizes["int8"] < sizes["fp16"] < sizes["fp32"]
