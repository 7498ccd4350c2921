import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import METHODS, blocks, make_method, mixtures, product
from wordreel.models.similarity import mixture

RNG = np.random.default_rng(0)


def unit(*shape):
    x = RNG.normal(size=shape).astype(np.float32)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_fitting_embeddings_is_fitting_their_similarities(name, monkeypatch):
    bank, gallery, extra = unit(90, 8), unit(31, 8), unit(20, 8)
    method = make_method(name)
    dual = name.startswith("dual")
    second = None
    if dual:
        second = bank @ extra.T if name == "dual-sinkhorn" else extra @ gallery.T
    wanted = method.fit(bank @ gallery.T, second)
    monkeypatch.setattr(blocks, "BATCH_VALUES", 31 * 17)
    others = product(bank, extra) if name == "dual-sinkhorn" else product(extra, gallery)
    found = method.fit(product(bank, gallery), others if dual else None)
    rows = unit(12, 8) @ gallery.T
    a, b = (
        np.asarray(getattr(s, "scores", s)) for s in (method.apply(rows, wanted), method.apply(rows, found))
    )
    # Blocks of a product differ in the last bit, and so may a rank among the bank.
    assert np.allclose(a, b, atol=1e-5) if name != "gc" else np.mean(np.abs(a - b) < 0.5) > 0.95


def test_half_precision_embeddings():
    bank, gallery = unit(40, 8), unit(10, 8)
    state = make_method("is").fit(product(bank.astype(np.float16), gallery.astype(np.float16)))
    assert np.allclose(state.bias(), make_method("is").fit(bank @ gallery.T).bias(), atol=2e-3)


@pytest.mark.parametrize("name", ["is", "dis", "csls", "cent", "sinkhorn"])
def test_fitting_mixtures_is_fitting_their_similarities(name, monkeypatch):
    queries, items = unit(50, 3, 6), unit(21, 3, 6)
    weights = RNG.uniform(size=(50, 3)).astype(np.float32)
    available = RNG.uniform(size=(21, 3)) < 0.6
    available[4] = False  # an item without any expert has similarity 0 to everything
    method = make_method(name)
    wanted = method.fit(mixture(queries, weights, items, available))
    garbage = np.where(available[:, :, None], items, np.nan).astype(np.float32)
    found = method.fit(mixtures(queries, weights, garbage, available))
    assert np.allclose(found.bias(), wanted.bias(), atol=1e-5)
    monkeypatch.setattr(blocks, "BATCH_VALUES", 21 * 7)  # seven rows at a time, and a short batch at the end
    found = method.fit(mixtures(queries, weights, garbage, available))
    assert np.allclose(found.bias(), wanted.bias(), atol=1e-5)
    exact = method.fit(mixtures(queries.astype(np.float64), weights, garbage, available))
    assert np.allclose(exact.bias(), wanted.bias(), atol=1e-5)


@pytest.mark.parametrize("values", [1, 31 * 17, 1 << 25])
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_keep_the_order_of_the_bank(values, threads, monkeypatch):
    bank, gallery = np.round(unit(90, 8), 1), np.round(unit(31, 8), 1)
    monkeypatch.setattr(blocks, "BATCH_VALUES", values)
    monkeypatch.setattr(blocks, "thread_count", lambda *_: threads)
    found = make_method("dis", k=2).fit(product(bank, gallery))
    similarities = bank.astype(np.float64) @ gallery.T.astype(np.float64)
    best = found.banks["queries"].statistics["winners"]
    assert np.allclose(best.scores[:, 0], similarities.max(axis=1), atol=1e-6)
    assert np.allclose(np.take_along_axis(similarities, best.ids, axis=1), best.scores, atol=1e-6)
    with pytest.raises(HubnessError, match=r"row 40, column"):
        make_method("dis").fit(product(np.where(np.arange(90)[:, None] == 40, np.nan, bank), gallery))


def test_shapes_are_checked():
    for bad in (
        lambda: product(unit(4, 3), unit(4, 2)),
        lambda: product(unit(4), unit(4, 2)),
        lambda: mixtures(unit(4, 2, 3), np.ones((4, 3)), unit(5, 2, 3), np.ones((5, 2), bool)),
        lambda: mixtures(unit(4, 2, 3), -np.ones((4, 2)), unit(5, 2, 3), np.ones((5, 2), bool)),
        lambda: make_method("is").fit(product(np.full((4, 3), np.nan), unit(4, 3))),
    ):
        with pytest.raises(HubnessError):
            bad()
