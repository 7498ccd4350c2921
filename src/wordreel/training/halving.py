"""What a search does next, as functions of the study alone, so that a killed trial can be done over.

Chance: a value depends on the seed, the number of its trial and its name. Stopping: successive halving as in
Optuna, but read off the reported scores; Optuna writes down that a trial went on before it has decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def steady_sampler(optuna: Any, seed: int) -> Any:
    """Tree-structured Parzen estimators (Bergstra et al., 2011) whose chance begins anew for every value."""

    class Steady(optuna.samplers.BaseSampler):  # type: ignore[misc]
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            made = np.random.SeedSequence([seed, trial.number, *param_name.encode()]).generate_state(1)
            drawn = optuna.samplers.TPESampler(seed=int(made[0]))
            return drawn.sample_independent(study, trial, param_name, param_distribution)

    return Steady()


def halving_pruner(optuna: Any, least: int, factor: int) -> Any:
    """Stops a trial that is not among the better 1/`factor` after `least`, `least · factor`, … epochs."""

    class Halving(optuna.pruners.BasePruner):  # type: ignore[misc]
        def prune(self, study: Any, trial: Any) -> bool:
            others = [
                one.intermediate_values
                for one in study.get_trials(deepcopy=False)
                if one.number != trial.number
            ]
            return lags(trial.intermediate_values, others, least, factor)

    return Halving()


def lags(mine: Mapping[int, float], others: Sequence[Mapping[int, float]], least: int, factor: int) -> bool:
    """Whether the last of `mine`, scores by epoch, passes a rung and is too low for it.

    >>> lags({1: 0.5}, [{1: 0.7}, {1: 0.6}, {1: 0.4}], 1, 3)
    True
    >>> lags({1: 0.5, 2: 0.5}, [{1: 0.7}], 1, 3)
    False
    """
    now, rung = max(mine, default=-1), least
    while rung <= now:
        if _passing(mine, rung) == now:
            if np.isnan(mine[now]):
                return True
            there = [one[place] for one in others if (place := _passing(one, rung)) >= 0]
            known = sorted([mine[now], *(value for value in there if not np.isnan(value))])
            if mine[now] < known[-max(1, len(known) // factor)]:
                return True
        rung *= factor
    return False


def _passing(scores: Mapping[int, float], rung: int) -> int:
    """The first epoch at or after a rung; −1 where there is none."""
    return min((epoch for epoch in scores if epoch >= rung), default=-1)
