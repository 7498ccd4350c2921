"""Published networks, run as they are: their inputs, outputs and batches."""

import numpy as np
import pytest
from tests.tiny_backbone import DIM, random_weights, write_graphs

from wordreel.backbones.config import ImageTransform
from wordreel.backbones.tower import Tower, normalize, resize_images, transform_images
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


def picture(height, width, count=1):
    return RNG.integers(0, 256, (count, height, width, 3), np.uint8)


def pillow(image, transform, *, columns_first):
    """The picture resized by Pillow as torchvision calls it, and cropped as torchvision crops."""
    pil = pytest.importorskip("PIL.Image")
    how = getattr(pil.Resampling, transform.interpolation.upper())
    (height, width), size = image.shape[:2], transform.size
    short = min(height, width)
    new = (size, size)
    if transform.resize == "crop":
        new = int(size * width / short), int(size * height / short)
    source = pil.fromarray(image)
    if columns_first:
        source = source.resize((new[0], height), how)
    resized = np.asarray(source.resize(new, how))
    left, top = round((new[0] - size) / 2), round((new[1] - size) / 2)
    return resized[top : top + size, left : left + size]


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("resize", ["crop", "squash"])
@pytest.mark.parametrize(
    ("height", "width"),
    [(360, 641), (97, 64), (64, 97), (64, 64), (50, 50), (20, 333), (3, 5), (1, 1), (512, 31), (641, 360)],
)
def test_every_byte_is_pillows(height, width, resize, interpolation):
    transform = ImageTransform(size=64, resize=resize, interpolation=interpolation)
    images = picture(height, width, 2)
    images[1] = np.where(images[1] > 127, 255, 0)  # bicubic overshoots here
    found = resize_images(images, transform)
    wanted = np.stack([pillow(image, transform, columns_first=True) for image in images])
    np.testing.assert_array_equal(found, wanted)
    if height <= width:
        wanted = np.stack([pillow(image, transform, columns_first=False) for image in images])
        np.testing.assert_array_equal(found, wanted)


def naive_bicubic(line, new):
    """One line of grey values, one sum per output pixel, in plain floats."""
    old, out = len(line), []
    scale = old / new
    widen = max(1.0, scale)
    for number in range(new):
        centre, total, weight = (number + 0.5) * scale, 0.0, 0.0
        for at in range(old):
            x = abs(at + 0.5 - centre) / widen
            w = (
                1.5 * x**3 - 2.5 * x**2 + 1
                if x < 1
                else -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
                if x < 2
                else 0.0
            )
            total, weight = total + w * line[at], weight + w
        out.append(min(255.0, max(0.0, total / weight)))
    return np.array(out)


@pytest.mark.parametrize(("old", "new"), [(40, 17), (17, 40), (9, 8)])
def test_lines_are_those_of_the_formula(old, new):
    line = RNG.integers(0, 256, old)
    image = np.broadcast_to(line[None, None, :, None], (1, old, old, 3)).astype(np.uint8)
    found = resize_images(image, ImageTransform(size=new, resize="squash"))
    assert np.abs(found[0, 0, :, 0] - naive_bicubic(line, new)).max() <= 0.51
    assert (found == found[:, :1]).all()


def test_long_pictures_cost_no_more_than_their_middle():
    image = np.zeros((1, 2, 400_000, 3), np.uint8)
    image[:, :, 200_000:] = 255
    found = resize_images(image, ImageTransform(size=224))
    assert found.shape == (1, 224, 224, 3)
    assert found[0, 0, 0, 0] == 0
    assert found[0, 0, -1, 0] == 255


def test_values_are_normalised():
    transform = ImageTransform(size=2, mean=(0.5, 0.25, 0.0), std=(0.5, 0.25, 2.0))
    images = np.full((1, 2, 2, 3), (0, 255, 51), np.uint8)
    found = transform_images(images, transform)
    assert found.dtype == np.float32
    assert found.shape == (1, 3, 2, 2)
    np.testing.assert_allclose(found[0, :, 0, 0], [-1, 3, 0.1], rtol=1e-6)
    np.testing.assert_array_equal(found, normalize(images, transform))
    assert transform_images(images[:0], transform).shape == (0, 3, 2, 2)
