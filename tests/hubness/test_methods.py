"""Every method against its slow twin, on thousands of small awkward cases."""

import numpy as np
import pytest
from tests.hubness import naive
from tests.hubness.cases import case

from wordreel.errors import HubnessError
from wordreel.hubness import METHODS, make_method, ranking_scores
from wordreel.hubness.registry import STATISTICS

pytestmark = pytest.mark.usefixtures("logits_on_purpose")

SEEDS = 231  # 7 kinds of similarities x 3 dtypes x 11: every kind with every dtype and a bank of one


def scores(method, given, gallery=None, bank=None):
    state = method.fit(given.bank if bank is None else bank, gallery)
    before = [a.copy() for a in (given.bank, given.gallery, given.rows)]
    out = ranking_scores(method.apply(given.rows, state))
    assert np.isfinite(out).all()
    for now, then in zip((given.bank, given.gallery, given.rows), before, strict=True):
        assert np.array_equal(now, then)
    return out


@pytest.mark.parametrize("beta", [0.001, 0.3, 20.0, 500.0])
def test_inverted_softmax(beta):
    for seed in range(SEEDS):
        given = case(seed)
        found = scores(make_method("is", beta=beta), given)
        wanted = naive.inverted_softmax(given.rows, given.bank, beta)
        assert np.allclose(found, wanted, rtol=0, atol=given.near), seed


@pytest.mark.parametrize("k", [1, 2, 20])
def test_dynamic_inverted_softmax(k):
    for seed in range(SEEDS):
        given = case(seed)
        method = make_method("dis", beta=20.0, k=k)
        found = method.apply(given.rows, method.fit(given.bank))
        wanted, opened = naive.dynamic_inverted_softmax(given.rows, given.bank, 20.0, k)
        assert found.activated.tolist() == opened, seed
        assert np.allclose(found.scores, wanted, rtol=0, atol=given.near), seed


@pytest.mark.parametrize(("beta", "gallery_beta"), [(20.0, 3.0), (0.5, 40.0)])
def test_dual_banks(beta, gallery_beta):
    for seed in range(SEEDS):
        given = case(seed)
        parameters = {"beta": beta, "gallery_beta": gallery_beta}
        found = scores(make_method("dual-is", **parameters), given, given.gallery)
        wanted = naive.dual_inverted_softmax(given.rows, given.bank, given.gallery, beta, gallery_beta)
        assert np.allclose(found, wanted, rtol=0, atol=given.near), seed
        found = scores(make_method("dual-dis", **parameters), given, given.gallery)
        wanted = naive.dual_dynamic_inverted_softmax(
            given.rows, given.bank, given.gallery, beta, gallery_beta
        )
        assert np.allclose(found, wanted, rtol=0, atol=given.near), seed


@pytest.mark.parametrize("k", [1, 3, 10])
def test_nearest_neighbours(k):
    for seed in range(SEEDS):
        given = case(seed)
        assert np.allclose(
            scores(make_method("csls", k=k), given),
            naive.csls(given.rows, given.bank, k),
            rtol=0,
            atol=2 * given.near,
        ), seed
        assert np.allclose(
            scores(make_method("nnn", k=k, alpha=0.6), given),
            naive.nnn(given.rows, given.bank, k, 0.6),
            rtol=0,
            atol=given.near,
        ), seed


def test_centring_and_none():
    for seed in range(SEEDS):
        given = case(seed)
        assert np.allclose(
            scores(make_method("cent"), given),
            naive.centring(given.rows, given.bank),
            rtol=0,
            atol=given.near,
        )
        assert np.array_equal(scores(make_method("none"), given), given.rows.astype(np.float64))


def test_globally_corrected_order_is_rank_then_similarity():
    for seed in range(SEEDS):
        given = case(seed)
        found = scores(make_method("gc"), given)
        for row, keys in zip(found, naive.gc_keys(given.rows, given.bank), strict=True):
            for a, x in enumerate(keys):
                for b, y in enumerate(keys):
                    better = (-x[0], x[1]) > (-y[0], y[1])
                    assert (row[a] > row[b]) == better, seed
        printed = scores(make_method("gc", printed=True), given)
        wanted = [[s - rank for rank, s in keys] for keys in naive.gc_keys(given.rows, given.bank)]
        assert np.allclose(printed, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(("beta", "rounds"), [(100.0, 5), (5.0, 1), (0.5, 3)])
def test_sinkhorn(beta, rounds):
    for seed in range(SEEDS // 2):
        given = case(seed)
        found = scores(make_method("sinkhorn", beta=beta, rounds=rounds), given)
        wanted = naive.sinkhorn(given.rows, given.bank, beta, rounds)
        assert np.allclose(found, wanted, rtol=0, atol=2 * given.near), seed
        extra = case(seed + 1).bank.astype(given.bank.dtype)
        extra = np.resize(extra, (len(given.bank), 3))
        found = scores(make_method("dual-sinkhorn", beta=beta, rounds=rounds), given, extra)
        wanted = naive.sinkhorn(given.rows, given.bank, beta, rounds, extra)
        assert np.allclose(found, wanted, rtol=0, atol=2 * max(given.near, 3e-6 * np.abs(extra).max())), seed


def test_dual_softmax_keeps_the_order_of_the_product():
    for seed in range(SEEDS):
        given = case(seed)
        method = make_method("dsl", beta=1.0)
        found = scores(method, given, bank=given.rows)
        wanted = naive.dual_softmax(given.rows, 1.0)
        assert np.array_equal(np.sign(found), np.sign(np.asarray(given.rows, np.float64)))
        a, b = wanted[:, :, None], wanted[:, None, :]
        # Only products far from underflow and from each other can be compared with the printed form.
        sure = (np.abs(a) > 1e-250) & (np.abs(b) > 1e-250) & (a > b + 1e-6 * np.abs(b))
        assert (found[:, :, None] > found[:, None, :])[sure].all(), seed


def test_test_time_inverted_softmax_is_the_softmax_over_the_test_queries():
    for seed in range(SEEDS):
        given = case(seed)
        method = make_method("test-is", beta=2.0)
        found = scores(method, given, bank=given.rows)
        wanted = naive.inverted_softmax(given.rows, given.rows, 2.0)
        assert np.allclose(found, wanted, rtol=0, atol=given.near), seed
        state = method.fit(given.rows)
        with pytest.raises(HubnessError, match="uses all test queries"):
            state.bias()


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"gc", "test-is", "dsl", "dual-dis"}))
def test_one_number_per_item_gives_the_same_ranking(name):
    for seed in range(SEEDS // 2):
        given = case(seed)
        method = make_method(name)
        second = {"dual-is": given.gallery, "dual-sinkhorn": given.bank[:, :1]}.get(name)
        state = method.fit(given.bank, second)
        assert method.foldable
        bias = state.bias()
        assert bias.dtype == np.float32
        assert bias.shape == (given.bank.shape[1],)
        assert abs(float(bias.astype(np.float64).mean())) <= given.near
        found = method.apply(given.rows, state)
        folded = given.rows.astype(np.float64) - bias
        if name == "dis":
            folded[~found.activated] = given.rows[~found.activated]
            assert found.activated.tolist() == state.activation[given.rows.argmax(axis=1)].tolist()
        gap = ranking_scores(found) / (2 if name == "csls" else 1) - folded
        assert np.ptp(gap, axis=1).max() <= 2 * given.near, (name, seed)


def test_blocks_threads_and_streams_change_nothing(monkeypatch):
    from wordreel.hubness import blocks

    rng = np.random.default_rng(3)
    bank, rows = (rng.uniform(-1, 1, (size, 23)).astype(np.float32) for size in (301, 157))
    for name in sorted(set(METHODS) - {"dual-is", "dual-dis", "dual-sinkhorn"}):
        method = make_method(name)
        whole = ranking_scores(method.apply(rows, method.fit(bank, threads=1), threads=1))
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "BLOCK_VALUES", 23 * 7)
            patch.setattr(blocks, "thread_count", lambda threads, elements: 3)
            cut = ranking_scores(method.apply(rows, method.fit(bank)))
            assert np.allclose(whole, cut, rtol=0, atol=2e-6), name
            if name != "sinkhorn":
                streamed = method.fit(iter([bank[:100], bank[100:101], bank[101:]]))
                assert np.allclose(whole, ranking_scores(method.apply(rows, streamed)), rtol=0, atol=2e-6), (
                    name
                )


def test_memory_maps_and_strides(tmp_path):
    rng = np.random.default_rng(4)
    bank = rng.uniform(-1, 1, (50, 9)).astype(np.float32)
    np.save(tmp_path / "bank.npy", bank)
    mapped = np.load(tmp_path / "bank.npy", mmap_mode="r")
    method = make_method("dis")
    wanted = method.fit(bank).bias()
    assert np.array_equal(method.fit(mapped).bias(), wanted)
    assert np.allclose(method.fit(np.asfortranarray(bank)).bias(), wanted, atol=1e-6)
    assert np.allclose(method.fit(np.repeat(bank, 2, axis=1)[:, ::2]).bias(), wanted, atol=1e-6)


def test_methods_are_registered_under_their_names():
    for registered in (METHODS, STATISTICS):
        assert {name: kind.name for name, kind in registered.items()} == {name: name for name in registered}
    assert "nothing" not in METHODS
