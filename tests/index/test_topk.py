"""The k best of a row where some scores are not numbers."""

import numpy as np
import pytest

from wordreel.index.topk import topk_ids


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_scores_that_are_not_numbers_rank_last(k):
    rows = np.array([[0.1, np.nan, 0.3, np.nan, 0.2], [np.nan] * 5, [5, 4, 3, 2, 1]], np.float32)
    expected = [[2, 4, 0, 1, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert topk_ids(rows, k).tolist() == [row[:k] for row in expected]
    assert np.isnan(rows[0, 1])  # what was given stays as it is
