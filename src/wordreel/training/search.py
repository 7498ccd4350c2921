"""Hyper-parameters by asynchronous successive halving (Li et al., 2020, arXiv 1810.05934), as for CE.

Optuna proposes values and stops trials that lag behind: after 1, 3, 9, … epochs the better third goes on. The
study lies in a file, so a search that was stopped goes on, and several processes can search together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.errors import TrainingError
from wordreel.training.recipe import Recipe

Train = Callable[[Recipe, Path, Callable[[int, float], None]], float]
Load = Callable[[list[str]], Recipe]

CE_SPACE: dict[str, Any] = {
    "loss.margin": {"low": 0.05, "high": 0.4},
    "model.text.clusters": {"low": 2, "high": 50},
    "model.text.ghosts": [0, 1, 2],
    "model.text.max_tokens": {"low": 10, "high": 50},
    "optimiser.rate": {"low": 1e-5, "high": 1e-2, "log": True},
    "run.batch": [16, 32, 64, 128, 256],
}
"""What was searched for CE (arXiv 1907.13487, A.3), as far as it does not depend on the experts."""


@dataclass(frozen=True)
class Found:
    """The best trial's overrides and score, and how many trials were begun and stopped early."""

    overrides: dict[str, Any]
    score: float
    trials: int
    stopped: int


def read_space(path: Path) -> dict[str, Any]:
    """A space from TOML: `"loss.margin" = {low = 0.05, high = 0.4}` or `"run.batch" = [16, 32]`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainingError(f"the search space {path} cannot be read: {error}") from None


def search(
    load: Load,
    train: Train,
    space: Mapping[str, Any],
    out: Path,
    *,
    trials: int = 20,
    seed: int = 0,
    least: int = 1,
    factor: int = 3,
) -> Found:
    """Try `trials` recipes. `load(overrides)` makes one, `train(recipe, folder, report)` trains it.

    `train` calls `report(epoch, score)` after each epoch, which may end the trial, and returns the score.
    """
    optuna = library()
    out.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="wordreel",
        direction="maximize",
        storage=f"sqlite:///{(out / 'study.sqlite').resolve()}",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=least, reduction_factor=factor),
    )

    def tried(trial: Any) -> float:
        chosen = {key: suggest(trial, key, choice) for key, choice in space.items()}

        def report(epoch: int, score: float) -> None:
            trial.report(score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        return train(load(as_overrides(chosen)), out / f"trial-{trial.number}", report)

    done = len([t for t in study.trials if t.state.is_finished()])
    study.optimize(tried, n_trials=max(0, trials - done), catch=(TrainingError,))
    finished = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    if not finished:
        raise TrainingError("no trial came to its end; look at the space's bounds")
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    return Found(dict(study.best_params), float(study.best_value), len(study.trials), len(pruned))


def suggest(trial: Any, key: str, choice: Any) -> Any:
    """One value: of a list, or between two numbers (whole ones if both are), evenly or by logarithm."""
    if isinstance(choice, list | tuple):
        return trial.suggest_categorical(key, list(choice))
    if not isinstance(choice, Mapping) or not {"low", "high"} <= set(choice):
        raise TrainingError(f"{key} is a list of values or {{low = …, high = …}}, not {choice!r}")
    low, high, log = choice["low"], choice["high"], bool(choice.get("log", False))
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(key, low, high, log=log)
    return trial.suggest_float(key, float(low), float(high), log=log)


def as_overrides(chosen: Mapping[str, Any]) -> list[str]:
    """
    >>> as_overrides({"run.batch": 16, "loss.kind": "info-nce", "run.compile": True})
    ['run.batch=16', 'loss.kind=info-nce', 'run.compile=true']
    """
    return [
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in chosen.items()
    ]


def library() -> Any:
    try:
        import optuna
    except ImportError:
        raise TrainingError("searching needs optuna: pip install 'wordreel[train]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
