"""The two calibration numbers: the likeliest ones, found by Newton and by looking everywhere."""

import math

import numpy as np
import pytest

from wordreel.errors import HubnessError
from wordreel.hubness.confidence import CHECKED
from wordreel.hubness.confidence_calibration import PRIOR, calibrate


def drawn(rng, hits, slope, toll):
    u = rng.normal(4, 2, hits)
    return u, rng.random(hits) < 1 / (1 + np.exp(toll - slope * u))


def naive_loss(u, y, slope, toll):
    value = PRIOR * ((slope - CHECKED.slope) ** 2 + (toll - CHECKED.toll) ** 2)
    for height, right in zip(slope * u - toll, y, strict=True):
        chance = 1 / (1 + math.exp(-height))
        value -= math.log(chance if right else 1 - chance) / len(u)
    return value


def test_newton_finds_the_minimum_of_the_slow_loss():
    u, y = drawn(np.random.default_rng(0), 200, 1.5, 5.0)
    found = calibrate(u, y)
    least = naive_loss(u, y, found.slope, found.toll)
    for by in (0.3, 0.03, 0.003):
        for a, b in ((by, 0), (-by, 0), (0, by), (0, -by), (by, by), (-by, -by), (by, -by), (-by, by)):
            assert naive_loss(u, y, found.slope + a, found.toll + b) > least - 1e-12


def test_finds_the_numbers_that_made_the_data():
    found = calibrate(*drawn(np.random.default_rng(1), 50_000, 2.0, 7.0))
    assert found.slope == pytest.approx(2.0, abs=0.1)
    assert found.toll == pytest.approx(7.0, abs=0.3)


def test_hopeless_and_perfect_hits_give_usable_numbers():
    right = np.random.default_rng(2).random(200) < 0.3
    perfect = np.where(right, 5.0, -5.0)
    for u in (perfect, -perfect, np.zeros(200), 100 * perfect, -100 * perfect):
        for y in (right, np.zeros(200, bool), np.ones(200, bool)):
            found = calibrate(u, y)
            assert found.slope > 0
            assert np.isfinite([found.slope, found.toll]).all()


@pytest.mark.parametrize("u", [np.zeros(0), np.zeros(3), np.array([np.nan, 0])])
def test_refusals(u):
    with pytest.raises(HubnessError, match="at least one hit"):
        calibrate(u, np.zeros(0 if len(u) == 0 else 2, bool))
