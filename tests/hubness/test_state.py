"""Changing a state gives what a fit from the start gives."""

import numpy as np
import pytest
from tests.hubness.cases import case

from wordreel.errors import HubnessError
from wordreel.hubness import METHODS, State, make_method, ranking_scores

ONE_BANK = {
    "is": {"beta": 20.0},
    "dis": {"beta": 20.0, "k": 2},
    "csls": {"k": 2},
    "nnn": {"k": 3},
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


def remove(state, gone, bank):
    """The state without some items; None where a gated method has to be fitted again, which it must say."""
    best = np.argsort(-bank, axis=1, kind="stable")[:, : getattr(state.method, "k", 1)]
    if state.method.gated and np.isin(best, gone).any():
        with pytest.raises(HubnessError, match="fit the bank again"):
            state.remove(gone)
        return None
    return state.remove(gone)


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
        wanted = method.fit(first[:, left])
        if (state := remove(state, gone, first)) is not None:
            same(state, wanted, rows[:, left], given.near)


def test_extend_gives_ties_to_the_older_item():
    state = make_method("dis").fit(np.array([[0.5, 0.1], [0.2, 0.3]])).extend(np.array([[0.5], [0.4]]))
    assert state.activation.tolist() == [True, False, True]


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
        "format": 2,
        "method": "dis",
        "parameters": {"beta": 20.0, "k": 1},
        "items": 3,
        "banks": {"queries": 3},
    }

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
        ({k: a for k, a in arrays.items() if "total" not in k}, about),
        (arrays, {**about, "items": 4}),
        (arrays, {**about, "banks": {}}),
        (arrays, {**about, "banks": {"elsewhere": 3}}),
        (arrays, {**about, "method": "os.system"}),
        (arrays, {**about, "parameters": {"beta": -1}}),
        (arrays, {**about, "parameters": {"gamma": 1}}),
        (arrays, {**about, "format": 1}),
        (arrays, []),
    ]
    for files, header in broken:
        with pytest.raises(HubnessError):
            attempt(files, header)


def test_sinkhorn_states_do_not_change():
    bank = np.random.default_rng(0).uniform(size=(12, 5))
    state = make_method("sinkhorn", beta=10.0).fit(bank)
    for change in (
        lambda: state.add(bank),
        lambda: state.merge(state),
        lambda: state.extend(bank),
        lambda: state.remove(np.array([0])),
    ):
        with pytest.raises(HubnessError, match="from the start"):
            change()


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
            change = rng.choice(["add", "extend", "remove"])
            if change == "add":
                new = draw(int(rng.integers(1, 4)), bank.shape[1])
                state, bank = state.add(new), np.concatenate([bank, new])
            elif change == "extend":
                new = draw(len(bank), int(rng.integers(1, 3)))
                state, bank = state.extend(new), np.concatenate([bank, new], axis=1)
            elif bank.shape[1] > 2:
                gone = rng.choice(bank.shape[1], int(rng.integers(1, 3)), replace=False)
                left = np.delete(bank, gone, axis=1)
                state, bank = remove(state, gone, bank) or method.fit(left), left
            same(state, method.fit(bank), draw(5, bank.shape[1]), 1e-4)


def test_a_bit_that_flipped_is_found(tmp_path):
    file = tmp_path / "state.safetensors"
    make_method("cent").fit(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)).save(file)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(HubnessError, match="not those it was written with"):
        State.load(file)


def test_lists_that_earlier_versions_filled_up_are_fitted_again(tmp_path):
    import json

    from safetensors.numpy import save_file

    bank = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    state = make_method("csls", k=7).fit(bank)
    values = state.banks["queries"].statistics["best"].arrays()["values"]
    padded = np.pad(values, ((0, 0), (0, 3)), constant_values=-np.inf)
    header = {"format": 2, "method": "csls", "parameters": {"k": 7}, "items": 5, "banks": {"queries": 4}}
    save_file({"queries/best/values": padded}, tmp_path / "state", metadata={"hubness": json.dumps(header)})
    with pytest.raises(HubnessError, match="fit the bank again"):
        State.load(tmp_path / "state")
