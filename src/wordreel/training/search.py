"""Hyper-parameters by asynchronous successive halving (Li et al., 2020, arXiv 1810.05934), as for CE.

Optuna proposes values, and trials that lag behind are stopped: after 1, 3, 9, … epochs the better third goes
on. The study lies in a file, so several processes can search together. A trial whose process died is done
over by the next one: a search that was killed tries what it would have tried.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.atomic import make_dir, sync_dir
from wordreel.errors import TrainingError
from wordreel.training.halving import halving_pruner, steady_sampler
from wordreel.training.recipe import Recipe
from wordreel.training.turns import Turns

Train = Callable[[Recipe, Path, Callable[[int, float], None]], float]
Load = Callable[[list[str]], Recipe]

NAME = "wordreel"  # of the study

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
    make_dir(out)
    turns = Turns(out / "turns")
    with turns.alone():
        _begin(optuna, out / "study.sqlite")
    study = optuna.load_study(
        study_name=NAME,
        storage=f"sqlite:///{(out / 'study.sqlite').resolve()}",
        sampler=steady_sampler(optuna, seed),
        pruner=halving_pruner(optuna, least, factor),
    )

    def tried(trial: Any) -> float:
        chosen = {key: suggest(trial, key, choice) for key, choice in space.items()}

        def report(epoch: int, score: float) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a trial that is done over reports what is known
                trial.report(score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        return train(load(as_overrides(chosen)), out / f"trial-{trial.number}", report)

    wrong: TrainingError | None = None
    try:
        while (trial := _next(optuna, study, turns, trials)) is not None:
            wrong = _do(optuna, study, trial, tried) or wrong
            turns.let_go(trial.number)
    finally:
        turns.close()
    finished = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    if not finished:
        running = any(not t.state.is_finished() for t in study.trials)
        advice = "other processes are still at it" if running else wrong or "look at the space's bounds"
        raise TrainingError(f"no trial came to its end; {advice}")
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    return Found(dict(study.best_params), float(study.best_value), len(study.trials), len(pruned))


def _begin(optuna: Any, path: Path) -> None:
    """An empty study. Its tables are made one by one, so it gets its name when all of them are there."""
    if path.exists():
        return
    fresh = path.with_name(path.name + ".new")
    for left in (fresh, fresh.with_name(fresh.name + "-journal")):
        left.unlink(missing_ok=True)
    storage = optuna.storages.RDBStorage(f"sqlite:///{fresh.resolve()}")
    optuna.create_study(study_name=NAME, direction="maximize", storage=storage)
    storage.remove_session()
    storage.engine.dispose()
    fresh.replace(path)
    sync_dir(path.parent)


def _next(optuna: Any, study: Any, turns: Turns, trials: int) -> Any:
    """A trial that was left unfinished, or a new one; None where there are enough."""
    with turns.alone():
        known = study.get_trials(deepcopy=False)
        for one in known:
            if one.state == optuna.trial.TrialState.RUNNING and turns.take(one.number):
                return optuna.trial.Trial(study, one._trial_id)
        if len(known) >= trials:
            return None
        trial = study.ask()
        turns.take(trial.number)
        return trial


def _do(optuna: Any, study: Any, trial: Any, tried: Callable[[Any], float]) -> TrainingError | None:
    """Run a trial and write down how it ended; what was wrong. One that is interrupted stays unfinished."""
    states = optuna.trial.TrialState
    try:
        value = tried(trial)
    except optuna.TrialPruned:
        study.tell(trial, state=states.PRUNED)
    except TrainingError as error:
        study.tell(trial, state=states.FAIL)
        return error
    except Exception:
        study.tell(trial, state=states.FAIL)
        raise
    else:
        study.tell(trial, value)
    return None


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
