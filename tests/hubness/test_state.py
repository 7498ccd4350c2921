"""Changing a state gives what a fit from the start gives."""

import numpy as np
import pytest
from tests.hubness.cases import case

from wordreel.errors import HubnessError
from wordreel.hubness import METHODS, State, make_method, ranking_scores

ONE_BANK = {
    "is": {"beta": 20.0},
    "dis": {"beta": 20.0, "k": 2},
    "csls": {"k": 2, "reserve": 2},
    "nnn": {"k": 3, "reserve": 1},
    "cent": {},
    "gc": {},
    "none": {},
    "dsl": {"beta": 3.0},
}
pytestmark = pytest.mark.usefixtures("logits_on_purpose")


def same(state, other, rows, near):
    assert (state.items, state.bank_size) == (other.items, other.bank_size)
    a, b = (s.method.apply(rows, s) for s in (state, other))
    assert np.allclose(ranking_scores(a), ranking_scores(b), rtol=0, atol=near)
    if state.method.gated:
        assert a.activated.tolist() == b.activated.tolist()
        assert state.activation.tolist() == other.activation.tolist()


@pytest.mark.parametrize("name", sorted(ONE_BANK))
def test_two_halves_merged_are_the_whole(name):
    for seed in range(150):
        given = case(seed)
        method = make_method(name, **ONE_BANK[name])
        both = np.concatenate([given.bank, given.gallery])
        whole = method.fit(both)
        merged = method.fit(given.bank).merge(method.fit(given.gallery))
        same(merged, whole, given.rows, given.near)
        same(method.fit(given.bank).add(given.gallery), whole, given.rows, given.near)
        same(method.fit(given.bank).add(iter([given.gallery])), whole, given.rows, given.near)


@pytest.mark.parametrize("name", sorted(ONE_BANK))
def test_dropped_queries_leave_no_trace(name):
    refitted = 0
    for seed in range(150):
        given = case(seed)
        method = make_method(name, **ONE_BANK[name])
        both = np.concatenate([given.bank, given.gallery])
        asked = []

        def refit(columns, given=given, asked=asked):
            asked.extend(columns)
            return given.bank[:, columns]

        at = np.arange(len(given.bank), len(both))
        dropped = method.fit(both).drop(given.gallery, at, refit=refit)
        refitted += len(asked)
        # A sum of which a thousandth is left keeps four digits; on the scale of β = 20 that is 5e-6.
        same(dropped, method.fit(given.bank), given.rows, given.near + 1e-4)
    assert (refitted > 0) == (name in {"is", "dis", "csls", "nnn", "dsl"})


@pytest.mark.parametrize("name", sorted(ONE_BANK))
def test_items_come_and_go(name):
    for seed in range(150):
        given = case(seed)
        method = make_method(name, **ONE_BANK[name])
        rng = np.random.default_rng(seed)
        columns = rng.permutation(given.bank.shape[1])
        first = given.bank[:, columns]
        old = int(rng.integers(1, len(columns) + 1))
        state = method.fit(first[:, :old])
        if old < len(columns):
            state = state.extend(first[:, old:])
        rows = given.rows[:, columns]
        same(state, method.fit(first), rows, given.near)
        gone = rng.choice(len(columns), int(rng.integers(0, len(columns))), replace=False)
        left = np.setdiff1d(np.arange(len(columns)), gone)
        state = state.remove(gone, refit=lambda at, left=left, first=first: first[at][:, left])
        same(state, method.fit(first[:, left]), rows[:, left], given.near)


def test_extend_gives_ties_to_the_older_item():
    state = make_method("dis").fit(np.array([[0.5, 0.1], [0.2, 0.3]])).extend(np.array([[0.5], [0.4]]))
    assert state.activation.tolist() == [True, False, True]


def test_stale_items_are_named_and_refused_until_refitted():
    bank = np.array([[5.0, 1.0], [0.0, 1.0], [0.1, 1.0]])
    method = make_method("is", beta=4.0)
    state = method.fit(bank).drop(bank[:1])
    assert state.stale.tolist() == [True, False]
    with pytest.raises(HubnessError, match="refit_columns"):
        state.bias()
    with pytest.raises(HubnessError, match="refit_columns"):
        method.apply(bank, state)
    mended = state.refit_columns(np.array([0]), bank[1:, :1])
    assert not mended.stale.any()
    assert np.allclose(mended.offset, method.fit(bank[1:]).offset)


def test_stale_bank_queries_are_named_and_refused_until_refitted():
    bank = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.1]])
    state = make_method("dis").fit(bank).remove(np.array([0]))
    assert state.stale_rows().tolist() == [0]
    with pytest.raises(HubnessError, match="refit_rows"):
        _ = state.activation
    mended = state.refit_rows(np.array([0]), bank[:1, 1:])
    assert mended.activation.tolist() == [True, True]


def test_reserve_lets_queries_go_without_a_refit():
    rng = np.random.default_rng(0)
    bank = rng.uniform(size=(30, 6)).astype(np.float32)
    method = make_method("csls", k=4, reserve=5)
    state = method.fit(bank)
    for left in range(29, 24, -1):
        state = state.drop(bank[left : left + 1])
        assert not state.stale.any()
        assert np.allclose(state.offset, method.fit(bank[:left]).offset, atol=1e-6)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_saved_state_is_the_same_state(name, tmp_path):
    for seed in (1, 8, 15, 5):
        given = case(seed)
        method = make_method(name, **ONE_BANK.get(name, {}))
        second = {
            "dual-is": given.gallery,
            "dual-dis": given.gallery,
            "dual-sinkhorn": given.bank[:, :1],
        }.get(name)
        state = method.fit(given.bank, second)
        state.save(tmp_path / "state")
        again = State.load(tmp_path / "state")
        assert again.method == method
        assert again.exact == state.exact
        a, b = (ranking_scores(method.apply(given.rows, s)) for s in (state, again))
        assert np.array_equal(a, b)
        if method.streaming and name not in {"dual-is", "dual-dis"}:
            same(again.add(given.gallery), state.add(given.gallery), given.rows, given.near)


def test_a_loaded_file_is_not_trusted(tmp_path):
    import json

    from safetensors.numpy import save_file

    path = tmp_path / "state"
    with pytest.raises(HubnessError, match="no hubness state"):
        State.load(path)
    path.write_bytes(b"\x80\x04not a state")
    with pytest.raises(HubnessError, match="not a hubness state"):
        State.load(path)
    state = make_method("dis").fit(np.eye(3))
    arrays = {
        f"queries/{k}/{f}": a
        for k, p in state.banks["queries"].statistics.items()
        for f, a in p.arrays().items()
    }
    about = {
        "format": 1,
        "method": "dis",
        "parameters": {"beta": 20.0, "k": 1},
        "items": 3,
        "banks": {"queries": 3},
    }
    about["exact"] = True

    def attempt(arrays, about):
        save_file(arrays, path, metadata={"hubness": json.dumps(about)})
        return State.load(path)

    assert attempt(arrays, about).bank_size == 3
    broken = [
        ({**arrays, "queries/winners/ids": np.full((3, 1), 7, np.int32)}, about),
        ({**arrays, "queries/winners/ids": np.zeros((2, 1), np.int32)}, about),
        ({**arrays, "queries/logsum/total": np.full(3, np.nan)}, about),
        ({**arrays, "queries/logsum/total": np.zeros(3)}, about),
        ({**arrays, "queries/logsum/shift": np.full(3, np.nan)}, about),
        ({**arrays, "queries/logsum/shift": np.full(3, -np.inf)}, about),
        ({**arrays, "queries/winners/scores": np.full((3, 1), np.inf)}, about),
        ({k: a for k, a in arrays.items() if "winners" not in k}, about),
        ({k: a for k, a in arrays.items() if "peak" not in k}, about),
        (arrays, {**about, "items": 4}),
        (arrays, {**about, "banks": {}}),
        (arrays, {**about, "banks": {"elsewhere": 3}}),
        (arrays, {**about, "method": "os.system"}),
        (arrays, {**about, "parameters": {"beta": -1}}),
        (arrays, {**about, "parameters": {"gamma": 1}}),
        (arrays, {**about, "format": 2}),
        (arrays, []),
    ]
    for files, header in broken:
        with pytest.raises(HubnessError):
            attempt(files, header)


def test_sinkhorn_refuses_new_queries_and_marks_new_items():
    rng = np.random.default_rng(0)
    bank = rng.uniform(size=(12, 5))
    method = make_method("sinkhorn", beta=10.0)
    state = method.fit(bank)
    for change in (lambda: state.add(bank), lambda: state.merge(state), lambda: state.drop(bank[:1])):
        with pytest.raises(HubnessError, match="from the start"):
            change()
    assert state.exact
    again = method.fit(bank[:, :4]).extend(bank[:, 4:])
    assert not again.exact
    assert np.abs(again.offset - state.offset)[:4].max() < 0.2
    # With the potentials of the queries given, the new item's is the same step that a fit takes.
    f = state.banks["queries"].statistics["potentials"].f
    wanted = np.log(np.mean(np.exp(10 * (bank[:, :1] + f[:, None])))) / 10
    assert np.isclose(state.extend(bank[:, :1]).offset[-1], wanted)


def test_compressed_columns_say_so():
    rng = np.random.default_rng(0)
    bank, rows = rng.uniform(size=(400, 6)), rng.uniform(size=(20, 6))
    exact, short = make_method("gc"), make_method("gc", levels=40)
    state = short.fit(bank)
    assert not state.exact
    assert exact.fit(bank).exact
    assert np.abs(short.apply(rows, state) - exact.apply(rows, exact.fit(bank))).max() <= 400 / 40 + 1
    with pytest.raises(HubnessError, match="compressed"):
        state.add(bank)
    assert make_method("gc", levels=1000).fit(bank).exact


def test_two_banks_change_one_at_a_time():
    rng = np.random.default_rng(0)
    bank, extra, rows = (rng.uniform(-1, 1, (size, 7)) for size in (20, 15, 9))
    for name in ("dual-is", "dual-dis"):
        method = make_method(name)
        whole = method.fit(bank, extra)
        grown = method.fit(bank[:12], extra[:6]).add(bank[12:]).add(extra[6:], bank="gallery")
        same(grown, whole, rows, 1e-9)
        wider = method.fit(bank[:, :5], extra[:, :5]).extend(bank[:, 5:], extra[:, 5:])
        same(wider, whole, rows, 1e-9)
        fewer = whole.drop(extra[-2:], bank="gallery")
        same(fewer, method.fit(bank, extra[:-2]), rows, 1e-9)
        with pytest.raises(HubnessError, match="gallery"):
            whole.extend(bank)


@pytest.mark.parametrize("name", ["is", "dis", "csls", "nnn", "cent", "gc"])
def test_any_sequence_of_changes_is_a_fit_of_what_is_left(name):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tied = seed % 2 == 0

        def draw(rows, items, rng=rng, tied=tied):
            values = rng.integers(-4, 5, (rows, items)) / 4 if tied else rng.uniform(-1, 1, (rows, items))
            return values.astype(np.float32)

        method = make_method(name, **ONE_BANK[name])
        bank = draw(6, 5)
        state = method.fit(bank)
        for _ in range(12):
            change = rng.choice(["add", "drop", "extend", "remove"])
            if change == "add":
                new = draw(int(rng.integers(1, 4)), bank.shape[1])
                state, bank = state.add(new), np.concatenate([bank, new])
            elif change == "drop" and len(bank) > 2:
                gone = rng.choice(len(bank), int(rng.integers(1, 3)), replace=False)
                left = np.delete(bank, gone, axis=0)
                state = state.drop(bank[gone], at=gone, refit=lambda columns, left=left: left[:, columns])
                bank = left
            elif change == "extend":
                new = draw(len(bank), int(rng.integers(1, 3)))
                state, bank = state.extend(new), np.concatenate([bank, new], axis=1)
            elif change == "remove" and bank.shape[1] > 2:
                gone = rng.choice(bank.shape[1], int(rng.integers(1, 3)), replace=False)
                bank = np.delete(bank, gone, axis=1)
                state = state.remove(gone)
                lost = state.stale_rows()
                if len(lost):
                    state = state.refit_rows(lost, bank[lost])
            same(state, method.fit(bank), draw(5, bank.shape[1]), 1e-4)


def test_queries_that_look_the_same_are_told_apart_by_their_places():
    bank = np.array([[0.9, 0.1], [0.5, 0.6], [0.9, 0.3]])
    new = np.array([[1.0], [0.0], [0.2]])
    state = make_method("dis").fit(bank)
    with pytest.raises(HubnessError, match="at="):
        state.drop(bank[2:])
    with pytest.raises(HubnessError, match="not those"):
        state.drop(bank[2:], at=[1])
    with pytest.raises(HubnessError, match="different queries"):
        state.drop(bank[:2], at=[1, 1])
    assert state.drop(bank[2:], at=[2]).extend(new[:2]).activation.tolist() == [False, True, True]
    assert state.drop(bank[:1], at=[0]).extend(new[1:]).activation.tolist() == [True, True, False]
    assert state.drop(bank[[0, 2]]).bank_size == 1


def test_a_new_item_does_not_hide_that_a_query_lost_its_best():
    bank = np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.1]])
    state = make_method("dis").fit(bank).remove(np.array([0])).extend(np.array([[0.3], [0.0]]))
    # The first query's second best is 0.5, not the new item's 0.3; only its row can say so.
    assert state.stale_rows().tolist() == [0]
    mended = state.refit_rows(np.array([0]), np.array([[0.1, 0.5, 0.3]]))
    assert mended.activation.tolist() == [True, True, False]


def test_a_merged_list_knows_what_either_side_left_out():
    low, high = np.array([[0.1], [0.2]]), np.array([[0.9], [0.8], [0.7]])
    method = make_method("csls", k=1, reserve=0)  # each side keeps one value
    for first, second in ((low, high), (high, low)):
        merged = method.fit(first).merge(method.fit(second))
        assert merged.offset[0] == pytest.approx(0.45)
        # 0.8 was left out, so after 0.9 is gone nothing below it can be trusted to be the best.
        assert merged.drop(np.array([[0.9]])).stale.tolist() == [True]
    wide = make_method("csls", k=1, reserve=1)
    for first, second in ((low, high), (high, low)):
        merged = wide.fit(first).merge(wide.fit(second)).drop(np.array([[0.9]])).drop(np.array([[0.8]]))
        assert merged.stale.tolist() == [True]
    narrow, other = wide.fit(np.array([[0.5], [0.0]])), wide.fit(high)
    for merged in (narrow.merge(other), other.merge(narrow)):
        assert merged.banks["queries"].statistics["best"].floor[0] == pytest.approx(0.7)


def test_a_bit_that_flipped_is_found(tmp_path):
    file = tmp_path / "state.safetensors"
    make_method("cent").fit(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)).save(file)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(HubnessError, match="not those it was written with"):
        State.load(file)
