"""Fit the two numbers of a `Calibration` to hits that are known to be right or wrong.

Logistic regression of right on u, by Newton's method from the shipped numbers, which also count a little as a
prior so that perfectly separated hits stay finite. Give the hits that a search would show (the ten best of
each query, say): that is what a confidence is for.
"""

from __future__ import annotations

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.confidence import CHECKED
from wordreel.types import Bool, Calibration, Float64

STEPS = 100
PRIOR = 1e-4  # of the squared distance to the shipped numbers, against the mean loss of a hit
LEAST_SLOPE = 1e-2


def calibrate(standing: Float64, right: Bool) -> Calibration:
    """The likeliest slope and toll for hits of `standing` (u) that are `right` or not."""
    u, y = np.asarray(standing, np.float64).ravel(), np.asarray(right, bool).ravel()
    if u.shape != y.shape or len(u) == 0 or not np.isfinite(u).all():
        raise HubnessError("calibration needs the standing of at least one hit, and whether it is right")
    start = np.array([CHECKED.slope, CHECKED.toll])
    here, value = start, loss(start, u, y)
    for _ in range(STEPS):
        step = _newton(here, u, y)
        for _ in range(40):  # a full step may pass the minimum where the curvature is small
            there = here - step
            there[0] = max(there[0], LEAST_SLOPE)
            found = loss(there, u, y)
            if found <= value:
                break
            step = step / 2
        gained = value - found
        if gained > 0:
            here, value = there, found
        if gained < 1e-12:
            break
    return Calibration(float(here[0]), float(here[1]))


def loss(numbers: Float64, u: Float64, y: Bool) -> float:
    """The mean −log likelihood of the hits, and the prior."""
    height = numbers[0] * u - numbers[1]
    start = np.array([CHECKED.slope, CHECKED.toll])
    prior = PRIOR * float(((numbers - start) ** 2).sum())
    return prior + float(np.logaddexp(0, np.where(y, -height, height)).mean())


def _newton(numbers: Float64, u: Float64, y: Bool) -> Float64:
    parts = np.stack([u, -np.ones(len(u))], axis=1)
    p = 1 / (1 + np.exp(-np.clip(parts @ numbers, -700, 700)))
    start = np.array([CHECKED.slope, CHECKED.toll])
    gradient = parts.T @ (p - y) / len(u) + 2 * PRIOR * (numbers - start)
    curve = (parts * (p * (1 - p))[:, None]).T @ parts / len(u) + 2 * PRIOR * np.eye(2)
    return np.asarray(np.linalg.solve(curve, gradient))
