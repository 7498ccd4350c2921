import numpy as np
import pytest
from tests.hubness.hubby import hubby

from wordreel.errors import HubnessError
from wordreel.hubness import choose_beta, choose_beta_unlabelled, corrected_ranks, make_method
from wordreel.hubness.choose_beta import GRID


def test_labelled_choice_is_the_best_of_the_grid():
    bank, rows, right = hubby(seed=1)
    chosen = choose_beta(bank, rows, right, grid=(1.0, 10.0, 20.0, 200.0))
    table = {}
    for beta in (1.0, 10.0, 20.0, 200.0):
        method = make_method("dis", beta=beta)
        ranks = corrected_ranks(method, method.fit(bank), rows, right)
        table[beta] = (-np.mean(ranks == 1), ranks.mean(), beta)
    assert chosen.beta == min(table, key=table.get)
    assert [t.beta for t in chosen.tried] == [1.0, 10.0, 20.0, 200.0]


def test_ties_go_to_the_smaller_beta():
    rows = np.eye(3, dtype=np.float32)
    assert choose_beta(rows, rows, np.arange(3), grid=(20.0, 5.0)).beta == 5.0


def test_unlabelled_choice_is_near_the_labelled_one():
    gaps = []
    for seed in range(4):
        bank, rows, right = hubby(seed=seed)
        method = make_method("is")
        labelled = choose_beta(bank, rows, right, method=method)
        r1 = {t.beta: t.r1 for t in labelled.tried}
        plain = 100 * np.mean(
            corrected_ranks(make_method("none"), make_method("none").fit(bank), rows, right) == 1
        )
        free = choose_beta_unlabelled(bank)
        assert len(free.tried) == len(GRID)
        assert r1[free.beta] > plain
        gaps.append((r1[labelled.beta] - r1[free.beta]) / (r1[labelled.beta] - plain))
    # It keeps most of what labels would gain over plain similarities.
    assert np.mean(gaps) < 0.1


def test_refusals():
    bank = np.eye(3, dtype=np.float32)
    for bad in (
        lambda: choose_beta(bank, bank[:0], np.zeros(0, int)),
        lambda: choose_beta(bank, bank, np.arange(3), grid=()),
        lambda: choose_beta(bank, bank, np.arange(3), method=make_method("csls")),
        lambda: choose_beta_unlabelled(bank[:1]),
    ):
        with pytest.raises(HubnessError):
            bad()
