import numpy as np
import onnx
import pytest
from tests.runtime.nets.tiny_efficientnet import fold, slow_network, tiny_weights

from wordreel.runtime.nets.efficientnet_lite import build
from wordreel.runtime.sessions import Network


@pytest.mark.parametrize("shape", [(20, 20), (21, 18), (1, 1)])
def test_the_graph_equals_the_slow_network(tmp_path, shape):
    weights = tiny_weights()
    onnx.save(build(fold(weights), halving={1}), tmp_path / "net.onnx")
    images = np.random.default_rng(2).integers(0, 256, (3, *shape, 3), dtype=np.uint8)
    found = Network(tmp_path / "net.onnx")(images=images)["features"]
    expected = slow_network(images, weights)
    assert expected.std() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-4)
