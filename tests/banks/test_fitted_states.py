"""Whatever happens to a bank or a library, the fitted numbers are those of a fit from the start."""

import numpy as np
import pytest

from wordreel.banks import fitted_states
from wordreel.banks.fitted_states import fit_all, update_or_fit
from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.catalogue.banks import Bank
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embedding_cache import Gallery
from wordreel.hubness import HubnessError, make_method, mixtures

NAMES = ["is", "dis", "csls", "nnn", "cent", "sinkhorn"]


def bank_of(ids):
    return Bank("b", "x", 0.0, tuple(ids), tuple(f"q{i}" for i in ids), ("x",) * len(ids))


class World:
    """Every query and item that could ever be, by id."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        e, d = 2, 6
        self.rng = rng
        self.queries = rng.normal(size=(60, e, d)).astype(np.float32)
        self.weights = rng.random((60, e)).astype(np.float32) + 0.1
        self.items = rng.normal(size=(80, e, d)).astype(np.float32)
        self.available = rng.random((80, e)) < 0.8
        self.queries /= np.linalg.norm(self.queries, axis=2, keepdims=True)
        self.items /= np.linalg.norm(self.items, axis=2, keepdims=True)
        self.items[~self.available] = 0

    def vectors(self, ids):
        ids = np.asarray(ids, np.int64)
        return BankEmbeddings(ids, self.queries[ids], self.weights[ids])

    def gallery(self, ids):
        ids = np.asarray(ids, np.int64)
        return Gallery(ids, self.items[ids], self.available[ids])


def expected(world, bank, items, method):
    ids, rows = np.array(bank.ids), np.asarray(items)
    source = mixtures(world.queries[ids], world.weights[ids], world.items[rows], world.available[rows])
    return method.fit(source)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(6))
def test_a_life_of_changes_equals_a_fit_from_the_start(name, seed):
    world = World(seed)
    method = make_method(name)
    queries = list(world.rng.permutation(60)[:20])
    items = list(world.rng.permutation(80)[:30])
    known = list(queries)
    now = None
    for _ in range(12):
        what = world.rng.integers(5)
        if what == 0:  # some bank queries come
            fresh = [int(q) for q in world.rng.permutation(60) if q not in queries][:5]
            queries += fresh
            known = list(dict.fromkeys(known + fresh))
        elif what == 1 and len(queries) > 6:  # some go; their embeddings are still at hand
            queries = queries[3:]
        elif what == 2:  # videos come
            items += [int(i) for i in world.rng.permutation(80) if i not in items][:7]
        elif what == 3 and len(items) > 8:  # videos go
            items = items[: len(items) // 2] + items[len(items) // 2 + 3 :]
        else:  # the cache gives the rows in another order
            items = [int(i) for i in world.rng.permutation(items)]
        bank = bank_of(queries)
        now = update_or_fit(now, bank, world.vectors(known), world.gallery(items), method)
        want = expected(world, bank, items, method)
        ids = np.array(items)
        np.testing.assert_allclose(now.bias(ids), want.bias(), atol=2e-5)
        if method.gated:
            np.testing.assert_array_equal(now.active(ids), want.activation)
        again = update_or_fit(now, bank, world.vectors(known), world.gallery(items), method)
        assert again is now


def test_a_query_whose_embedding_is_gone_leads_to_a_new_fit():
    world = World(0)
    method = make_method("dis")
    now = update_or_fit(None, bank_of(range(10)), world.vectors(range(10)), world.gallery(range(20)), method)
    left = bank_of(range(2, 10))
    now = update_or_fit(now, left, world.vectors(range(2, 10)), world.gallery(range(20)), method)
    want = expected(world, left, range(20), method)
    np.testing.assert_allclose(now.bias(np.arange(20)), want.bias(), atol=1e-6)


def test_new_videos_do_not_refit(monkeypatch):
    world = World(1)
    method = make_method("dis")
    first = update_or_fit(
        None, bank_of(range(10)), world.vectors(range(10)), world.gallery(range(20)), method
    )

    def refuse(*_args, **_named):
        raise HubnessError("fitted again")

    monkeypatch.setattr(type(method), "fit", refuse)
    now = update_or_fit(first, bank_of(range(12)), world.vectors(range(12)), world.gallery(range(25)), method)
    monkeypatch.undo()
    want = expected(world, bank_of(range(12)), range(25), method)
    np.testing.assert_allclose(now.bias(np.arange(25)), want.bias(), atol=1e-5)


def test_all_methods_at_once_are_each_by_itself():
    world, bank = World(2), bank_of(range(12))
    methods = [
        make_method("is", beta=15),
        make_method("dis", beta=30),
        make_method("csls"),
        make_method("sinkhorn"),
        make_method("cent"),
    ]
    given = (bank, world.vectors(range(12)), world.gallery(range(25)))
    found = fit_all(*given, methods)
    ids = np.arange(25)
    for method, one in zip(methods, found, strict=True):
        alone = update_or_fit(None, *given, method)
        np.testing.assert_array_equal(one.bias(ids), alone.bias(ids))
        assert one.state.method == method


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_of_some_items_at_a_time_is_that_of_all(name, monkeypatch):
    world, bank, method = World(3), bank_of(range(12)), make_method(name)
    given = (bank, world.vectors(range(12)), world.gallery(range(40)))
    monkeypatch.setattr(fitted_states, "FITTED_AT_ONCE", 7)
    found = update_or_fit(None, *given, method)
    want = expected(world, bank, range(40), method)
    np.testing.assert_allclose(found.bias(np.arange(40)), want.bias(), atol=1e-5)
    if method.gated:
        np.testing.assert_array_equal(found.active(np.arange(40)), want.activation)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_not_live_do_not_count(name):
    world, bank, method = World(4), bank_of(range(12)), make_method(name)
    ids, live = np.arange(40), np.arange(40) % 3 > 0
    gallery = Gallery(ids, world.items[ids], world.available[ids], live)
    vectors, before = world.vectors(range(12)), None
    for start in (None, world.gallery(range(40))):  # fitted anew, and following one with all rows
        if start is not None:
            before = update_or_fit(None, bank, vectors, start, method)
        found = update_or_fit(before, bank, vectors, gallery, method)
        want = expected(world, bank, ids[live], method)
        np.testing.assert_allclose(found.bias(ids)[live], want.bias(), atol=2e-5)
        assert not found.bias(ids)[~live].any()
        if method.gated:
            np.testing.assert_array_equal(found.active(ids)[live], want.activation)
            assert not found.active(ids)[~live].any()


def test_a_state_is_written_again_when_much_has_changed(tmp_path, monkeypatch):
    """What few changes did is found again by the next process, whether it was written or not."""
    monkeypatch.setattr(fitted_states, "FEW_CHANGES", 0.1)
    world, method, saved = World(3), make_method("dis"), []
    real = fitted_states.save_state
    monkeypatch.setattr(
        fitted_states, "save_state", lambda *args: (saved.append(len(args[2]["items"])), real(*args))
    )
    with LibraryStore.create_or_open(tmp_path / "lib") as store:
        for queries, items in ((10, 40), (10, 42), (10, 43), (10, 46), (11, 46), (11, 44)):
            bank, vectors, gallery = (
                bank_of(range(queries)),
                world.vectors(range(11)),
                world.gallery(range(items)),
            )
            now = fitted_states.load_or_fit(store, tmp_path, bank, vectors, gallery, method)
            want = expected(world, bank, range(items), method)
            np.testing.assert_allclose(now.bias(np.arange(items)), want.bias(), atol=1e-5)
    assert saved == [40, 46, 46]
