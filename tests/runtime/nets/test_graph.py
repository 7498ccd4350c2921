import numpy as np
import onnx
import pytest

from wordreel.runtime.nets.graph import Graph, fold_batch_norm
from wordreel.runtime.sessions import Network, threads

RNG = np.random.default_rng(0)


def run(tmp_path, model, **inputs):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return Network(path)(**inputs)


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's rule: as many outputs as ceil(size / stride), the odd zero at the end."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def slow_conv(x, weight, bias, stride, pads, groups):
    """Every output pixel as one explicit sum. `pads` is ((top, bottom), (left, right))."""
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    outputs, per_group = len(weight), weight.shape[1]
    high, wide = weight.shape[2:]
    rows, columns = (x.shape[2] - high) // stride + 1, (x.shape[3] - wide) // stride + 1
    y = np.zeros((len(x), outputs, rows, columns))
    for out in range(outputs):
        first = out // (outputs // groups) * per_group
        for row in range(rows):
            for column in range(columns):
                top, left = row * stride, column * stride
                patch = x[:, first : first + per_group, top : top + high, left : left + wide]
                y[:, out, row, column] = (patch * weight[out]).sum((1, 2, 3)) + bias[out]
    return y


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 4])
def test_same_convolution_equals_the_sum(tmp_path, size, kernel, stride, groups):
    x = RNG.standard_normal((2, 4, size, size + 1)).astype(np.float32)
    weight = RNG.standard_normal((8, 4 // groups, kernel, kernel)).astype(np.float32)
    bias = RNG.standard_normal(8).astype(np.float32)
    graph = Graph("conv")
    y = graph.conv(
        graph.input("x", ("n", 4, "h", "w")), weight, bias, stride=stride, pad="SAME", groups=groups
    )
    pads = (same_padding(size, kernel, stride), same_padding(size + 1, kernel, stride))
    expected = slow_conv(x, weight, bias, stride, pads, groups)
    np.testing.assert_allclose(run(tmp_path, graph.finish({"y": y}), x=x)["y"], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("pad", "pads"), [(1, ((1, 1), (1, 1))), ((1, 0), ((1, 1), (0, 0))), ((0, 1, 2, 1), ((0, 2), (1, 1)))]
)
def test_padding_in_numbers(tmp_path, pad, pads):
    x = RNG.standard_normal((1, 2, 6, 5)).astype(np.float32)
    weight = RNG.standard_normal((3, 2, 3, 3)).astype(np.float32)
    graph = Graph("conv")
    y = graph.conv(graph.input("x", (1, 2, 6, 5)), weight, pad=pad)
    expected = slow_conv(x, weight, np.zeros(3), 1, pads, 1)
    np.testing.assert_allclose(run(tmp_path, graph.finish({"y": y}), x=x)["y"], expected, atol=1e-4)


@pytest.mark.parametrize(("kind", "how"), [("MaxPool", np.max), ("AveragePool", np.mean)])
def test_pooling(tmp_path, kind, how):
    x = RNG.standard_normal((1, 2, 6, 4)).astype(np.float32)
    graph = Graph("pool")
    y = graph.pool(kind, graph.input("x", (1, 2, 6, 4)), (3, 2), (3, 2))
    expected = how(x.reshape(1, 2, 2, 3, 2, 2), axis=(3, 5))
    np.testing.assert_allclose(run(tmp_path, graph.finish({"y": y}), x=x)["y"], expected, rtol=1e-5)


def test_linear(tmp_path):
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    weight, bias = RNG.standard_normal((5, 4)), RNG.standard_normal(5)
    graph = Graph("linear")
    value = graph.input("x", ("n", 3, 4))
    model = graph.finish({"with": graph.linear(value, weight, bias), "without": graph.linear(value, weight)})
    found = run(tmp_path, model, x=x)
    np.testing.assert_allclose(found["with"], x @ weight.T + bias, atol=1e-5)
    np.testing.assert_allclose(found["without"], x @ weight.T, atol=1e-5)


@pytest.mark.parametrize("affine", [True, False])
def test_a_folded_batch_norm_is_a_convolution_and_a_batch_norm(affine):
    x = RNG.standard_normal((2, 3, 5, 5))
    weight, bias = RNG.standard_normal((4, 3, 3, 3)), RNG.standard_normal(4)
    mean, variance = RNG.standard_normal(4), RNG.uniform(0.1, 2, 4)
    scale, shift = (RNG.standard_normal(4), RNG.standard_normal(4)) if affine else (None, None)
    none = ((0, 0), (0, 0))
    y = slow_conv(x, weight, bias, 1, none, 1)
    wide = (slice(None), None, None)
    expected = (y - mean[wide]) / np.sqrt(variance[wide] + 1e-3)
    if affine:
        expected = expected * scale[wide] + shift[wide]
    folded = fold_batch_norm(weight, bias, mean, variance, scale, shift, 1e-3)
    np.testing.assert_allclose(slow_conv(x, *folded, 1, none, 1), expected)


def test_the_same_graph_is_the_same_file():
    def build():
        graph = Graph("same")
        x = graph.input("x", ("n", 2))
        return graph.finish({"y": graph.linear(x, np.eye(2), np.ones(2))}).SerializeToString()

    assert build() == build()


def test_threads(monkeypatch):
    monkeypatch.setenv("WORDREEL_THREADS", "3")
    assert threads() == 3
    monkeypatch.delenv("WORDREEL_THREADS")
    assert threads() >= 1
