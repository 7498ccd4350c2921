import math

import pytest

torch = pytest.importorskip("torch")

from mpnet import BUCKETS, FARTHEST, buckets, sentences  # noqa: E402

DIM, HEADS, LAYERS = 12, 3, 2


def random_weights():
    made = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=made) * 0.4

    weights = {
        "embeddings.word_embeddings.weight": draw(20, DIM),
        "embeddings.position_embeddings.weight": draw(40, DIM),
        "encoder.relative_attention_bias.weight": draw(BUCKETS, HEADS),
    }
    shapes = {"embeddings.LayerNorm": (DIM,)}
    for number in range(LAYERS):
        at = f"encoder.layer.{number}"
        shapes |= {f"{at}.attention.attn.{name}": (DIM, DIM) for name in "qkvo"}
        shapes |= {f"{at}.attention.LayerNorm": (DIM,), f"{at}.output.LayerNorm": (DIM,)}
        shapes |= {f"{at}.intermediate.dense": (30, DIM), f"{at}.output.dense": (DIM, 30)}
    for name, shape in shapes.items():
        weights[f"{name}.weight"], weights[f"{name}.bias"] = draw(*shape), draw(shape[0])
    return weights


def slow_sentence(weights, ids):
    """One text, one head and one pair of positions at a time."""

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        apart = x - x.mean(-1, keepdim=True)
        scaled = apart / torch.sqrt((apart**2).mean(-1, keepdim=True) + 1e-5)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    words, places = (weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
    x = norm(torch.stack([words[i] + places[n + 2] for n, i in enumerate(ids)]), "embeddings.LayerNorm")
    size = DIM // HEADS
    for number in range(LAYERS):
        at = f"encoder.layer.{number}"
        q, k, v = (linear(x, f"{at}.attention.attn.{name}") for name in "qkv")
        mixed = torch.zeros_like(x)
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            for i in range(len(ids)):
                scores = torch.stack(
                    [
                        q[i, own] @ k[j, own] / math.sqrt(size)
                        + weights["encoder.relative_attention_bias.weight"][slow_bucket(j - i), head]
                        for j in range(len(ids))
                    ]
                )
                mixed[i, own] = torch.softmax(scores, 0) @ v[:, own]
        x = norm(x + linear(mixed, f"{at}.attention.attn.o"), f"{at}.attention.LayerNorm")
        wide = torch.nn.functional.gelu(linear(x, f"{at}.intermediate.dense"))
        x = norm(x + linear(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = x.mean(0)
    return mean / mean.norm()


def slow_bucket(ahead):
    first = BUCKETS // 2 if ahead > 0 else 0
    far, near = abs(ahead), BUCKETS // 4
    if far < near:
        return first + far
    share = math.log(far / near) / math.log(FARTHEST / near)
    return first + min(near + int(share * (BUCKETS // 2 - near)), BUCKETS // 2 - 1)


def test_buckets_equal_their_definition():
    found = buckets(150)
    away = [(i, j) for i in range(0, 150, 7) for j in range(150)]
    # A power of two lies on an edge, which rounding decides.
    clear = [(i, j) for i, j in away if abs(j - i) not in (16, 32, 64, 128)]
    assert [int(found[i, j]) for i, j in clear] == [slow_bucket(j - i) for i, j in clear]


def test_sentences_equal_a_slow_network_and_padding_takes_no_part():
    weights = random_weights()
    one, two = [0, 5, 7, 9, 2], [0, 11, 2]
    ids = torch.tensor([one, [*two, 1, 1]])
    found = sentences(weights, HEADS, ids, (ids != 1).long())
    for row, text in zip(found, (one, two), strict=True):
        assert torch.allclose(row, slow_sentence(weights, text), atol=1e-5)
