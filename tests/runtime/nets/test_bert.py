import math

import numpy as np
import onnx
import pytest

from wordreel.runtime.nets.bert import EPSILON, build
from wordreel.runtime.sessions import Network

DIM, HEADS, WIDE, LAYERS, VOCABULARY, PLACES = 12, 3, 20, 2, 30, 9


def tiny_weights():
    rng = np.random.default_rng(3)
    shapes = {
        "embeddings.word_embeddings.weight": (VOCABULARY, DIM),
        "embeddings.position_embeddings.weight": (PLACES, DIM),
        "embeddings.token_type_embeddings.weight": (2, DIM),
        "embeddings.LayerNorm.weight": (DIM,),
        "embeddings.LayerNorm.bias": (DIM,),
    }
    for number in range(LAYERS):
        at = f"encoder.layer.{number}."
        for name, out, inside in (
            ("attention.self.query", DIM, DIM),
            ("attention.self.key", DIM, DIM),
            ("attention.self.value", DIM, DIM),
            ("attention.output.dense", DIM, DIM),
            ("intermediate.dense", WIDE, DIM),
            ("output.dense", DIM, WIDE),
        ):
            shapes[f"{at}{name}.weight"], shapes[f"{at}{name}.bias"] = (out, inside), (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{at}{name}.weight"] = shapes[f"{at}{name}.bias"] = (DIM,)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def slow_mean(tokens, w):
    """One sentence without padding, one head and one token at a time, in float64."""

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * w[f"{name}.weight"]
            + w[f"{name}.bias"]
        )

    def linear(x, name):
        return x @ w[f"{name}.weight"].T.astype(np.float64) + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    x = (
        x
        + w["embeddings.position_embeddings.weight"][: len(tokens)]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, "embeddings.LayerNorm")
    width = DIM // HEADS
    for number in range(LAYERS):
        at = f"encoder.layer.{number}."
        query, key, value = (linear(x, f"{at}attention.self.{name}") for name in ("query", "key", "value"))
        mixed = np.zeros_like(x)
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            for token in range(len(tokens)):
                shares = np.exp(key[:, part] @ query[token, part] / math.sqrt(width))
                mixed[token, part] = shares / shares.sum() @ value[:, part]
        x = norm(x + linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        wide = linear(x, f"{at}intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = norm(x + linear(wide, f"{at}output.dense"), f"{at}output.LayerNorm")
    return x.mean(0)


def unit(x):
    return x / np.linalg.norm(x)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    path = tmp_path_factory.mktemp("bert") / "net.onnx"
    onnx.save(build(tiny_weights(), HEADS), path)
    return Network(path)


def pad(sentences):
    longest = max(map(len, sentences))
    ids, mask = np.zeros((2, len(sentences), longest), np.int64)
    for row, tokens in enumerate(sentences):
        ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
    return {"input_ids": ids, "attention_mask": mask}


def test_padded_batches_equal_slow_single_sentences(network):
    sentences = [[5], [1, 2, 3], [29, 0, 29, 7, 7, 7, 7, 8, 4], [3, 2, 1]]
    found = network(**pad(sentences))["sentences"]
    expected = np.stack([unit(slow_mean(tokens, tiny_weights())) for tokens in sentences])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert abs(found[1] @ found[3]) < 0.9999  # order matters


def test_a_row_of_nothing_but_padding_is_finite(network):
    found = network(input_ids=np.zeros((1, 4), np.int64), attention_mask=np.zeros((1, 4), np.int64))[
        "sentences"
    ]
    assert np.isfinite(found).all()
