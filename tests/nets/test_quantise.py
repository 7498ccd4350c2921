"""Products in 8 bits: against NumPy, and as sentences."""

import numpy as np
import pytest

from wordreel.nets import sentences
from wordreel.nets.graph import LEVELS, Graph
from wordreel.nets.quantise import quantise_products
from wordreel.nets.runtime import Network
from wordreel.nets.sentences import SentenceEncoder

TEXTS = ["a man lifts a car", "two dogs run over a frozen lake, and one of them falls", "soup"]


def rounded_product(x, weight):
    """`x @ weight.T` with 255 steps for all of x, from the least to the largest, and `LEVELS` for weights."""
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    step = (high - low) / 255
    x = np.rint(x / step) * step
    steps = np.abs(weight).max(axis=1, keepdims=True) / LEVELS
    return x @ (np.rint(weight / steps) * steps).T


def test_products_by_constant_matrices_alone_are_rounded():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(24, 16)).astype(np.float32), rng.normal(size=(8, 24)).astype(np.float32)
    graph = Graph("two layers")
    x = graph.input("x", ("n", 16))
    y = graph.op("Relu", graph.linear(x, first, np.ones(24)))
    square = graph.op("MatMul", y, graph.op("Transpose", y, perm=[1, 0]))
    model = graph.finish({"out": graph.linear(y, second), "square": square})
    network = Network(quantise_products(model.SerializeToString()))
    given = rng.normal(size=(5, 16)).astype(np.float32)
    got = network(x=given)
    hidden = np.maximum(rounded_product(given, first) + 1, 0)
    assert np.abs(got["out"] - rounded_product(hidden, second)).max() < 0.05
    assert np.abs(got["out"] - np.maximum(given @ first.T + 1, 0) @ second.T).max() > 1e-3  # it is rounded
    assert np.allclose(got["square"], hidden @ hidden.T, atol=1e-3)


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder()


def test_fast_sentences_are_close_and_the_same_in_any_batch(encoder):
    together = encoder.encode_fast(TEXTS)
    exact = SentenceEncoder().encode(TEXTS)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert ((together * exact).sum(axis=1) > 0.985).all()
    assert (together != exact).any()
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(SentenceEncoder().encode_fast([text])[0], row)
    assert np.array_equal(encoder.encode(TEXTS), together)  # what a search has encoded, its reasons reuse


def test_a_damaged_network_is_made_again(encoder, tmp_path):
    good = encoder.encode_fast(TEXTS)
    again = SentenceEncoder()
    again._root = tmp_path
    (tmp_path / "derived").mkdir()
    stored = tmp_path / "derived" / f"{again._name}-8-bits.onnx"
    stored.write_bytes(b"not a network")
    assert np.array_equal(again.encode_fast(TEXTS), good)
    assert stored.stat().st_size > 2**20


def test_an_accelerator_encodes_exactly(monkeypatch):
    monkeypatch.setattr(sentences, "accelerated", lambda: True)
    exact = SentenceEncoder()
    assert np.array_equal(exact.encode_fast(TEXTS), SentenceEncoder().encode(TEXTS))
    assert "_network_in_8_bits" not in vars(exact)
