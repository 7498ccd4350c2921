import numpy as np
import pytest
import torch

from wordreel.lab.models.appearance.efficientnet_lite import EfficientNetLite, InvertedBottleneck
from wordreel.runtime.nets.efficientnet_lite import LITE2, build, fold
from wordreel.runtime.sessions import Network


def randomised(module):
    """Statistics and weights as after a training, not 0 and 1."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2)
            elif "bn" in name and value.is_floating_point():
                value.normal_(0, 0.3)
    return module.eval()


@pytest.mark.parametrize("size", [(32, 32), (33, 47)])
def test_the_module_equals_the_network_that_searches(tmp_path, size):
    stages = ((1, 3, 4, 1), (2, 5, 6, 6))
    module = randomised(EfficientNetLite(stages, stem=8, features=12, classes=3, halving={1}))
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    (tmp_path / "network.onnx").write_bytes(build(fold(state), {1}).SerializeToString())
    images = np.random.default_rng(0).integers(0, 256, (2, *size, 3), np.uint8)
    expected = Network(tmp_path / "network.onnx")(images=images)["features"]
    pixels = (torch.from_numpy(images).permute(0, 3, 1, 2).float() - 127) / 128
    with torch.no_grad():
        features = module(pixels).numpy()
    np.testing.assert_allclose(features, expected, atol=1e-4, rtol=1e-4)


def test_checkpointed_blocks_give_the_same_gradients():
    stages = ((1, 3, 4, 1), (2, 3, 4, 2))
    plain = randomised(EfficientNetLite(stages, stem=4, features=6, classes=2, halving=()))
    saving = EfficientNetLite(stages, stem=4, features=6, classes=2, halving=(), checkpointed=True).eval()
    saving.load_state_dict(plain.state_dict())
    pixels = torch.randn(2, 3, 16, 16)
    for module in (plain, saving):
        module(pixels).square().sum().backward()
    for one, other in zip(plain.parameters(), saving.parameters(), strict=True):
        assert (one.grad is None and other.grad is None) or torch.allclose(one.grad, other.grad, atol=1e-6)


def test_lite2_has_the_published_number_of_parameters():
    module = EfficientNetLite(LITE2)
    assert sum(value.numel() for value in module.parameters()) == 6_092_072
    assert len(module._blocks) == 21


def test_the_input_is_added_only_where_the_shape_stays():
    assert InvertedBottleneck(4, 4, 3, 2, 1).residual
    assert not InvertedBottleneck(4, 4, 3, 2, 2).residual
    assert not InvertedBottleneck(4, 6, 3, 2, 1).residual
