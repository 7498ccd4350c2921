"""Published architectures: small ones against slow twins, full ones against published sizes."""

import re

import numpy as np
import onnx
import pytest
from tests.runtime.nets import naive_nets

from wordreel.errors import WeightsError
from wordreel.runtime.nets import convnets, sound_networks, video_networks
from wordreel.runtime.nets.net_builder import build_onnx, weight_shapes
from wordreel.runtime.nets.video_networks import I3D, I3D_KINETICS
from wordreel.runtime.sessions import Network
from wordreel.runtime.torch_file import check, unwrapped

SMALL_MIXED = tuple((place, (4, 3, 5, 2, 3, 4)) for place, _ in video_networks.KINETICS)
SMALL = {
    "resnext": (convnets.ResNet((1, 2, 1), groups=2, group_width=16, planes=8), "resnet", (2, 3, 37, 45)),
    "vggface2": (convnets.ResNet((1, 2), planes=4, caffe=True), "resnet", (2, 3, 36, 40)),
    "senet": (convnets.SENet((1, 2, 1), groups=2, reduction=4, planes=4), "senet", (2, 3, 38, 33)),
    "densenet": (convnets.DenseNet((2, 3), growth=4, start=6, bottleneck=2), "densenet", (2, 3, 40, 47)),
    "r2plus1d": (video_networks.R2Plus1D((1, 2), planes=4, stem=5), "r2plus1d", (1, 3, 6, 17, 20)),
    "s3d": (video_networks.S3D(SMALL_MIXED, stem=4, second=6), "s3d", (1, 3, 24, 32, 36)),
    "vggish": (
        sound_networks.VGGish(((0, 3), (3, 4), (6, 4), (8, 5), (11, 4), (13, 6)), 10, 7),
        "vggish",
        (2, 1, 96, 64),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_graph_equals_the_slow_twin(name, tmp_path):
    config, twin, shape = SMALL[name]
    state = naive_nets.random_state(weight_shapes(config)[0])
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    expected = getattr(naive_nets, twin)(naive_nets.Naive(state), config, x.astype(np.float64))
    built = build_onnx(name, config, state)
    onnx.save(built, str(tmp_path / "network.onnx"))
    features = Network(tmp_path / "network.onnx")(**{built.graph.input[0].name: x})["features"]
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(features, expected, rtol=2e-4, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("frames", [16, 40])
def test_the_pytorch_layout_of_i3d_equals_the_slow_twin(frames, tmp_path):
    config = I3D(frames, 64, (4, 5, 6), ((4, 3, 5, 2, 3, 4),) * 9)
    state = naive_nets.random_state(weight_shapes(config)[0])
    images = np.random.default_rng(1).integers(0, 256, (frames, 64, 64, 3), np.uint8)
    onnx.save(build_onnx("i3d", config, state), str(tmp_path / "network.onnx"))
    features = Network(tmp_path / "network.onnx")(frames=images)["features"]
    expected = naive_nets.i3d(naive_nets.Naive(state), config, images.astype(np.float64))
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


def test_weights_beside_the_model_give_the_same_features(tmp_path):
    config, _, shape = SMALL["senet"]
    state = naive_nets.random_state(weight_shapes(config)[0])
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    onnx.save(build_onnx("inside", config, state), str(tmp_path / "inside.onnx"))
    onnx.save(build_onnx("beside", config, state, tmp_path / "w.bin"), str(tmp_path / "beside.onnx"))
    onnx.checker.check_model(str(tmp_path / "beside.onnx"))
    inside, beside = (
        Network(tmp_path / f"{name}.onnx")(frames=x)["features"] for name in ("inside", "beside")
    )
    assert np.array_equal(inside, beside)
    assert (tmp_path / "w.bin").stat().st_size > 4096


@pytest.mark.parametrize(
    ("network", "count"),
    [
        (convnets.RESNEXT101_32X48D, 828_411_176),
        (convnets.ResNet((3, 4, 6, 3)), 25_557_032),
        (convnets.SENET154, 115_088_984),
        (convnets.DenseNet(), 28_681_000),
        (video_networks.R2PLUS1D_34_IG65M, 63_676_142),
        (video_networks.S3D_KINETICS, 8_320_048),
        (sound_networks.VGGISH, 72_141_184),
    ],
)
def test_full_networks_have_the_published_number_of_parameters(network, count):
    shapes, heads = weight_shapes(network)
    trained = {key: shape for key, shape in (shapes | heads).items() if ".running_" not in key}
    assert sum(int(np.prod(shape)) for shape in trained.values()) == count


def test_the_full_i3d_has_the_published_number_of_parameters():
    networks = weight_shapes(I3D_KINETICS)
    shapes = networks[0] | networks[1]
    assert sum(int(np.prod(s)) for key, s in shapes.items() if ".running_" not in key) == 12_697_264


def test_keys_are_those_of_the_published_files():
    assert weight_shapes(convnets.SENET154)[0]["layer3.35.se_module.fc1.weight"] == (64, 1024, 1, 1)
    assert weight_shapes(convnets.RESNEXT101_32X48D)[0]["layer4.2.conv2.weight"] == (12288, 384, 3, 3)
    assert weight_shapes(video_networks.R2PLUS1D_34_IG65M)[0]["layer2.0.conv2.0.0.weight"] == (
        288,
        128,
        1,
        3,
        3,
    )
    assert weight_shapes(video_networks.S3D_KINETICS)[0]["base.15.branch1.1.conv_t.weight"] == (
        384,
        384,
        3,
        1,
        1,
    )
    assert weight_shapes(convnets.DENSENET161_PLACES365)[1]["classifier.weight"] == (365, 2208)
    assert weight_shapes(I3D_KINETICS)[0]["Mixed_5c.b1b.conv3d.weight"] == (384, 192, 3, 3, 3)


def test_older_densenet_keys_become_todays():
    shapes = weight_shapes(SMALL["densenet"][0])[0]
    old = {
        re.sub(r"(denselayer\d+\.(?:norm|conv))(\d)", r"\1.\2", key): np.zeros(s) for key, s in shapes.items()
    }
    assert set(old) != set(shapes)
    assert set(convnets.modern(old)) == set(shapes)
    assert set(convnets.modern(convnets.modern(old))) == set(shapes)


def test_a_wrapper_is_taken_off_only_if_all_keys_have_it():
    assert list(unwrapped({"module.a": np.zeros(1), "module.b": np.zeros(1)})) == ["a", "b"]
    assert list(unwrapped({"module.a": np.zeros(1), "b": np.zeros(1)})) == ["module.a", "b"]


SHAPES, HEADS = {"conv.weight": (4, 3, 1, 1)}, {"fc.weight": (10, 4), "fc.bias": (10,)}


def complain(**state):
    state = {key.replace("_", "."): value for key, value in state.items()}
    with pytest.raises(WeightsError) as caught:
        check(state, SHAPES, HEADS, ignore=("text",), given="mine.pth", expected="theirs.pth")
    return str(caught.value)


def test_the_first_mismatch_is_named():
    right = np.zeros((4, 3, 1, 1), np.float32)
    assert "mine.pth is not theirs.pth: it has no conv.weight (it has a, b" in complain(a=right, b=right)
    assert "it has nothing" in complain()
    assert "conv.weight has the shape 4×3, not 4×3×1×1" in complain(conv_weight=right[:, :, 0, 0])
    assert "int64" in complain(conv_weight=right.astype(np.int64))
    assert "conv.weight holds numbers that are not finite" in complain(conv_weight=right * np.float32("nan"))
    assert "it has layer9.weight, which" in complain(conv_weight=right, layer9_weight=right)
    assert "fc.weight has the shape 7×5, not any×4" in complain(conv_weight=right, fc_weight=np.zeros((7, 5)))


def test_any_number_of_classes_and_unused_parts_are_fine():
    right = np.zeros((4, 3, 1, 1), np.float32)
    state = {"conv.weight": right, "fc.weight": np.zeros((99, 4)), "fc.bias": np.zeros(99), "text.x": right}
    check(state, SHAPES, HEADS, ignore=("text",), given="mine", expected="theirs")
    check({"conv.weight": right}, SHAPES, HEADS, given="mine", expected="theirs")
