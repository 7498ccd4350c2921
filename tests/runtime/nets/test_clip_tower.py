"""The image tower's products in 8 bits, on a tiny tower; and the real one where it is on this machine."""

import numpy as np
import onnx
import pytest
from safetensors.numpy import save_file
from tests.runtime.nets.tiny_clip_tower import in_eight_bits, tiny_tower

from tools import clip_ranges
from wordreel.errors import WeightsError
from wordreel.runtime.nets import clip_tower
from wordreel.runtime.nets.clip_tower import LEVELS, RANGES, golden_cosine, in_float, products, read_ranges
from wordreel.runtime.sessions import Network


def pictures(count=6, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 3, 224, 224)).astype(np.float32)


def embed(network, given):
    rows = Network(network)(pixel_values=given)["image_embeds"]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def tower(tmp_path_factory):
    """The tiny tower in float and in 8 bits, and its ranges in place of the real ones."""
    folder = tmp_path_factory.mktemp("tower")
    exact = tiny_tower(folder / "vision_model.onnx")
    published = in_eight_bits(exact, folder / "clip_encoder.int8.onnx")
    model = onnx.load(str(exact))
    bounds = clip_ranges.measure(model, [*pictures(8, seed=2), *clip_tower.golden_pictures()])
    arrays = clip_ranges.ranges(onnx.load(str(exact)), bounds)
    save_file({**arrays, "golden": clip_ranges.golden(model)}, str(folder / "ranges"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clip_tower, "RANGES", folder / "ranges")
        yield exact, published


@pytest.fixture(scope="module", params=["float", "8 bits"])
def converted(request, tower, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    clip_tower.convert({"any name": tower[request.param == "8 bits"]}, out)
    return out / "network.onnx"


def test_products_are_found_in_both_forms(tower):
    found = [products(onnx.load(str(path))) for path in tower]
    roles = [f"{layer}.{part}" for layer in (0, 1) for part in ("attention", "out", "fc1", "fc2")]
    for forms in found:
        assert list(dict.fromkeys(product.role for product in forms)) == [*roles, "projection"]
    for exact, rounded in zip(*found, strict=True):
        assert (exact.source, exact.result) == (rounded.source, rounded.result)
        np.testing.assert_allclose(exact.weight(), rounded.weight(), atol=0.02)


def test_embeddings_are_close_to_the_float_tower(tower, converted):
    cosines = (embed(converted, pictures()) * embed(tower[0], pictures())).sum(axis=1)
    assert cosines.min() > 0.99
    assert cosines.max() < 0.99999  # it is rounded


def test_an_embedding_does_not_depend_on_its_batch(converted):
    given = pictures()
    alone = np.concatenate([embed(converted, one[None]) for one in given])
    np.testing.assert_allclose(alone, embed(converted, given), atol=1e-5)


def test_only_what_is_needed_is_left(converted):
    model = onnx.load(str(converted))
    assert [output.name for output in model.graph.output] == ["image_embeds"]
    kinds = [node.op_type for node in model.graph.node]
    assert (kinds.count("MatMulInteger"), kinds.count("QuantizeLinear")) == (11, 7)
    assert "DynamicQuantizeLinear" not in kinds
    constants = {one.name: one for one in model.graph.initializer}
    assert set(constants) <= {name for node in model.graph.node for name in node.input}
    for node in model.graph.node:
        if node.op_type == "MatMulInteger":
            assert np.abs(onnx.numpy_helper.to_array(constants[node.input[1]])).max() == LEVELS


def test_a_product_is_the_obvious_one(tower, converted):
    """Round a / s to 255 steps and s W to 63 a side, multiply in float."""
    ranges, _ = read_ranges(clip_tower.RANGES)
    model = onnx.load(str(tower[0]))
    product = products(onnx.load(str(converted)))[0]
    known = ranges[product.role]
    exact = next(one for one in products(model) if one.result == product.result)
    step = np.float32((known.high - known.low) / 255)
    zero = np.clip(np.rint(-known.low / step), 0, 255)
    given = np.random.default_rng(3).normal(size=(5, len(known.smooth)))
    rounded = (np.clip(np.rint(given / known.smooth / step) + zero, 0, 255) - zero) * step
    matrix = exact.weight() * known.smooth[:, None]
    steps = np.abs(matrix).max(axis=0) / LEVELS
    wanted = rounded @ (np.rint(matrix / steps) * steps)
    np.testing.assert_allclose(rounded @ product.weight(), wanted, atol=0.1)
    assert np.abs(wanted - given @ exact.weight()).max() < 0.3


def test_an_accelerator_computes_the_same_in_float(converted):
    model = onnx.load_from_string(in_float(converted))
    assert not {"MatMulInteger", "QuantizeLinear"} & {node.op_type for node in model.graph.node}
    cosines = (embed(in_float(converted), pictures()) * embed(converted, pictures())).sum(axis=1)
    assert cosines.min() > 0.99


def test_other_networks_are_refused(tower, tmp_path):
    (tmp_path / "page.onnx").write_bytes(b"<html>sign in first</html>")
    other = tiny_tower(tmp_path / "other.onnx", seed=7)
    smaller = tiny_tower(tmp_path / "smaller.onnx", dim=64)
    for path, why in ((tmp_path / "page.onnx", ""), (other, "cosine of"), (smaller, "")):
        with pytest.raises(WeightsError, match=rf"{path.name} is not the image tower.*{why}"):
            clip_tower.convert({"any name": path}, tmp_path)


def test_the_shipped_ranges_are_those_of_twelve_layers():
    ranges, golden = read_ranges(RANGES)
    assert len(ranges) == 3 * 12 + 1
    assert golden.shape == (2, 512)
    assert {len(known.smooth) for known in ranges.values()} == {768}
    assert all(known.low < 0 < known.high for known in ranges.values())
    assert RANGES.stat().st_size < 200_000


def test_the_real_tower(monkeypatch):
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    if not store.has("clip-image-tower"):
        pytest.skip("its weights are not on this machine")
    _, golden = read_ranges(RANGES)
    assert golden_cosine(store.file("clip-image-tower"), golden) > 0.98


def test_the_expert_takes_the_form_that_suits_the_machine(converted, monkeypatch):
    from wordreel.experts import clip

    squares = np.random.default_rng(4).integers(0, 255, (3, 224, 224, 3), np.uint8)
    rounded = clip._Tower(converted)(squares)
    monkeypatch.setattr(clip, "accelerated", lambda: True)
    exact = clip._Tower(converted)(squares)
    lengths = np.linalg.norm(rounded, axis=1) * np.linalg.norm(exact, axis=1)
    assert ((rounded * exact).sum(axis=1) / lengths).min() > 0.99
    assert (rounded != exact).any()
