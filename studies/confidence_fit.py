"""Fit a `Calibration`: a logistic regression whose weights are not negative, on features of top hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.hubness.confidence import probabilities
from wordreel.types import Bool, Calibration, Float64

CROWD_AT_MOST = 0.4  # a video that fits as well is wrong by the labels, and often right to the eye
RIDGE = 1e-3  # of the weights of standardised features
STEPS = 100
CROWD_PLACE = 1  # among the features


@dataclass(frozen=True, eq=False)
class Hits:
    """Top hits of queries that count `weight` together: `features [n, 4]` and whether each is `right [n]`."""

    features: Float64
    right: Bool
    weight: float = 1.0


def fit_calibration(groups: Sequence[Hits], crowd_at_most: float = CROWD_AT_MOST) -> Calibration:
    """The calibration of largest likelihood; a feature that would count against a hit is left out.

    A weight below zero would make a better score less sure. The weight of the crowd is held at its bound if
    the fit would exceed it, and the others are fitted to that.
    """
    features = np.concatenate([each.features for each in groups])
    right = np.concatenate([each.right for each in groups]).astype(np.float64)
    weights = np.concatenate([np.full(len(each.right), each.weight / len(each.right)) for each in groups])
    fixed: dict[int, float] = {}
    while True:
        free = [place for place in range(features.shape[1]) if place not in fixed]
        offset = features[:, list(fixed)] @ np.array(list(fixed.values()))
        slopes, toll = _logistic(features[:, free], right, weights, offset)
        found = dict(zip(free, slopes.tolist(), strict=True))
        lowest = min(found, key=lambda place: found[place])
        if found[lowest] < 0:
            fixed[lowest] = 0.0
        elif found.get(CROWD_PLACE, 0.0) > crowd_at_most:
            fixed[CROWD_PLACE] = crowd_at_most
        else:
            break
    every = found | fixed
    return Calibration(*(round(float(value), 3) for value in (*(every[at] for at in sorted(every)), toll)))


def _logistic(features: Float64, right: Float64, weights: Float64, offset: Float64) -> tuple[Float64, float]:
    """Newton's method on standardised features, beside an offset; returns the slopes and the toll."""
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-12
    design = np.column_stack([(features - mean) / deviation, np.ones(len(features))])
    ridge = RIDGE * weights.sum() * np.append(np.ones(features.shape[1]), 0)
    theta = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ theta + offset, -30, 30)))
        slope = design.T @ (weights * (chance - right)) + ridge * theta
        curve = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        theta -= step
        if np.abs(step).max() < 1e-9:
            break
    slopes = theta[:-1] / deviation
    return slopes, float(slopes @ mean - theta[-1])


def confidences(hits: Hits, calibration: Calibration) -> Float64:
    """What a calibration says of these hits."""
    return probabilities(hits.features, calibration)
