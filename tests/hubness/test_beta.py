import statistics

import numpy as np
import pytest
from tests.hubness.hubby import hubby

from wordreel.errors import HubnessError
from wordreel.hubness import choose_beta_unlabelled, make_method, ranking_scores
from wordreel.hubness.beta import GRID
from wordreel.retrieval.ranks import ranks_of


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

        def r1(method, bank=bank, rows=rows, right=right):
            return 100 * np.mean(ranks_of(ranking_scores(method.apply(rows, method.fit(bank))), right) == 1)

        beta = choose_beta_unlabelled(bank)
        by_beta = {value: r1(make_method("is", beta=value)) for value in (*GRID, beta)}
        plain = r1(make_method("none"))
        assert by_beta[beta] > plain
        best = max(by_beta.values())
        gaps.append((best - by_beta[beta]) / (best - plain))
    assert np.mean(gaps) < 0.1


def test_a_bank_of_one_query_has_no_spread():
    with pytest.raises(HubnessError, match="at least two queries"):
        choose_beta_unlabelled(np.eye(3, dtype=np.float32)[:1])
