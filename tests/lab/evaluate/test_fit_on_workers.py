"""A bank fitted in blocks on workers gives what one fit gives."""

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness import make_method
from wordreel.lab.evaluate.fit_on_workers import fit_on
from wordreel.workers.executor import Executor, Outcome


class HereWorker:
    """Runs calls in this process."""

    def wait_ready(self) -> None: ...
    def stop(self) -> None: ...
    def call(self, function, args, on_event) -> Outcome:
        return Outcome.of(function, *args)


@pytest.fixture
def executor():
    with Executor(lambda number: HereWorker(), 2) as made:
        yield made


@pytest.fixture
def bank(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "bank.npy"
    np.save(path, np.tanh(rng.normal(size=(53, 17))).astype(np.float32))
    return path


@pytest.mark.parametrize("name", ["is", "dis", "csls", "cent", "nnn"])
@pytest.mark.parametrize("some", [False, True])
def test_equal_to_one_fit(executor, bank, name, some):
    columns = np.arange(17) % 3 > 0 if some else None
    method = make_method(name)
    values = np.load(bank)
    one = method.fit(values if columns is None else values[:, columns])
    many = fit_on(executor, bank, None, method, columns)
    assert (many.bank_size, many.items) == (one.bank_size, one.items)
    rows = np.random.default_rng(1).uniform(-1, 1, (5, one.items)).astype(np.float32)
    mine, theirs = method.apply(rows, many), method.apply(rows, one)
    if method.gated:
        np.testing.assert_array_equal(mine.activated, theirs.activated)
        mine, theirs = mine.ranking_scores, theirs.ranking_scores
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_warnings_of_workers_are_passed_on_once(executor, tmp_path):
    np.save(tmp_path / "logits.npy", 50 * np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32))
    with pytest.warns(UserWarning, match="look like logits") as caught:
        fit_on(executor, tmp_path / "logits.npy", None, make_method("is"), None)
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["sinkhorn", "test-is"])
def test_methods_without_mergeable_states_are_refused(executor, bank, name):
    with pytest.raises(HubnessError, match="that can be merged"):
        fit_on(executor, bank, None, make_method(name), None)
