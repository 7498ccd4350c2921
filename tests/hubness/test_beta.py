import statistics

import numpy as np
import pytest
from tests.hubness.hubby import hubby

from wordreel.errors import HubnessError
from wordreel.hubness import choose_beta, choose_beta_unlabelled, corrected_ranks, make_method
from wordreel.hubness.beta import GRID


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


def test_unlabelled_choice_equals_the_slow_twin():
    for seed, scale in ((0, 1.0), (1, 100.0), (2, 1e-3)):
        bank = scale * hubby(seed=seed, bank=60, items=21)[0]
        bank[:, 4] = bank[0, 4]  # no spread: it does not count
        spreads = [statistics.pstdev(map(float, column)) for column in bank.T]
        usual = statistics.median(spread for number, spread in enumerate(spreads) if number != 4)
        assert choose_beta_unlabelled(bank) == float(f"{1.5 / usual:.2g}")
    assert choose_beta_unlabelled(np.full((5, 3), 0.2)) == 20.0


def test_unlabelled_choice_keeps_most_of_what_labels_gain():
    gaps = []
    for seed in range(4):
        bank, rows, right = hubby(seed=seed)
        beta = choose_beta_unlabelled(bank)
        labelled = choose_beta(bank, rows, right, grid=(*GRID, beta), method=make_method("is"))
        r1 = {t.beta: t.r1 for t in labelled.tried}
        plain = 100 * np.mean(
            corrected_ranks(make_method("none"), make_method("none").fit(bank), rows, right) == 1
        )
        assert r1[beta] > plain
        gaps.append((r1[labelled.beta] - r1[beta]) / (r1[labelled.beta] - plain))
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
