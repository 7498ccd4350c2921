import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file
from tests.nets.tiny_efficientnet import slow_network, tiny_weights

from wordreel.nets.efficientnet_lite import build, convert, fold
from wordreel.nets.runtime import Network


@pytest.mark.parametrize("shape", [(20, 20), (21, 18), (1, 1)])
def test_the_graph_equals_the_slow_network(tmp_path, shape):
    weights = tiny_weights()
    onnx.save(build(fold(weights), halving={1}), tmp_path / "net.onnx")
    images = np.random.default_rng(2).integers(0, 256, (3, *shape, 3), dtype=np.uint8)
    found = Network(tmp_path / "net.onnx")(images=images)["features"]
    expected = slow_network(images, weights)
    assert expected.std() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_convert_writes_the_network_and_its_head(tmp_path):
    weights = tiny_weights()
    save_file(weights, tmp_path / "given")
    convert({"any/name.pth": tmp_path / "given"}, tmp_path)
    head = load_file(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(head["weight"], weights["_fc.weight"])
    np.testing.assert_array_equal(head["bias"], weights["_fc.bias"])
    onnx.checker.check_model(onnx.load(tmp_path / "network.onnx"))
