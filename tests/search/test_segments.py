import numpy as np
import pytest

from wordreel.search.segments import distinct, first_places


@pytest.mark.parametrize("count", [0, 1, 7, 200])
def test_distinct_values_and_their_first_places_are_numpys(count):
    rng = np.random.default_rng(count)
    for _ in range(20):
        values = rng.integers(-5, 20, count)
        every, first = np.unique(values, return_index=True)
        np.testing.assert_array_equal(distinct(values), every)
        np.testing.assert_array_equal(first_places(values), np.sort(first))
