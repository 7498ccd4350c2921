"""The figures of the published procedure, written down plainly for the benchmark."""

import numpy as np
from benchmarks.hubness import plain, synthetic, wordreel

from wordreel.hubness import make_method
from wordreel.hubness.bank_statistics import ActivationSet
from wordreel.hubness.methods.globally_corrected import SortedColumns


def test_figures_equal_those_of_the_plain_procedure(tmp_path):
    synthetic(tmp_path, bank=600, items=120, queries=480)
    bank, test = np.load(tmp_path / "bank.npy"), np.load(tmp_path / "test.npy")
    ours = wordreel(bank, test)
    assert ours == plain(bank.astype(np.float64), test.astype(np.float64))
    assert ours["after.r1"] > 0


def test_counts_and_columns_are_those_of_the_bank():
    bank = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.4]])
    method = make_method("dis")
    assert method.fit(bank).statistic(ActivationSet).counts.tolist() == [2, 1]
    method = make_method("gc")
    assert method.fit(bank).statistic(SortedColumns).sorted.tolist() == [[0.3, 0.8, 0.9], [0.1, 0.2, 0.4]]


def test_lists_are_taken_as_rows():
    method = make_method("is")
    assert method.apply([[0.5, 0.1]], method.fit(np.eye(2))).shape == (1, 2)
