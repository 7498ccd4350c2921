"""Hyper-parameter search by asynchronous successive halving (Li et al., 2020, arXiv 1810.05934), as for CE.

Optuna samples values (TPE) and prunes trials that lag behind: after 1, 3, 9, … epochs the better third
continues. The study is an SQLite file, so several processes can search together. A search that was killed
continues with the same trials: the next process runs an unfinished trial again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import TrainingError
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.search_space import as_overrides, suggest
from wordreel.lab.training.trial_locks import TrialLocks
from wordreel.util.atomic import make_dir, sync_dir

ReportScore = Callable[[int, float], None]
TrainTrial = Callable[[Recipe, Path, ReportScore], float]
LoadRecipe = Callable[[list[str]], Recipe]

STUDY_NAME = "wordreel"
STUDY_FILE = "study.sqlite"


@dataclass(frozen=True)
class TrialSummary:
    """The best trial's overrides and score, and how many trials ran and were stopped early."""

    overrides: dict[str, Any]
    score: float
    trials: int
    stopped: int


def search(
    load: LoadRecipe,
    train: TrainTrial,
    space: Mapping[str, Any],
    out: Path,
    *,
    trials: int = 20,
    seed: int = 0,
    min_epochs: int = 1,
    reduction_factor: int = 3,
) -> TrialSummary:
    """Search `space` for the values that train best.

    Args:
        load: Builds a recipe from overrides (`["run.batch=32"]`).
        train: Trains `(recipe, folder, report)` and returns the score. It calls `report(epoch, score)` after
            each epoch, which may end the trial.
        space: Keys of the recipe with their values or bounds; see `search_space`.
        out: Folder of the study and of one folder per trial. An existing study is continued.
        trials: Number of trials, earlier sessions included.
        min_epochs: Epochs before a trial can be stopped.
        reduction_factor: 1 of so many trials continues at each rung.

    Raises:
        TrainingError: No trial finished; the message says why the last one failed.
    """
    optuna = import_optuna()
    make_dir(out)
    locks = TrialLocks(out / "trials.lock")
    with locks.exclusive():
        _create_study(optuna, out / STUDY_FILE)
    study = optuna.load_study(
        study_name=STUDY_NAME,
        storage=_storage_url(out / STUDY_FILE),
        sampler=resumable_sampler(optuna, seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_epochs, reduction_factor),
    )

    def objective(trial: Any) -> float:
        values = {key: suggest(trial, key, choice) for key, choice in space.items()}

        def report(epoch: int, score: float) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a trial that runs again reports known epochs
                trial.report(score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned

        return train(load(as_overrides(values)), out / f"trial-{trial.number}", report)

    failure: TrainingError | None = None
    try:
        while (trial := _next_trial(optuna, study, locks, trials, reduction_factor)) is not None:
            failure = _run_trial(optuna, study, trial, objective) or failure
            locks.release(trial.number)
    finally:
        locks.close()
    return _summary(optuna, study, failure)


def resumable_sampler(optuna: Any, seed: int) -> Any:
    """Optuna's TPE sampler (Bergstra et al., 2011), seeded for each value by its trial's number and its name.

    A sampler seeded once would draw other values after a restart.
    """

    class ResumableTPESampler(optuna.samplers.BaseSampler):  # type: ignore[misc]
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            state = np.random.SeedSequence([seed, trial.number, *param_name.encode()]).generate_state(1)
            sampler = optuna.samplers.TPESampler(seed=int(state[0]))
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    return ResumableTPESampler()


def _create_study(optuna: Any, path: Path) -> None:
    """Create an empty study in one step: Optuna cannot open one whose tables were created in part."""
    if path.exists():
        return
    temporary = path.with_name(path.name + ".new")
    for leftover in (temporary, temporary.with_name(temporary.name + "-journal")):
        leftover.unlink(missing_ok=True)
    storage = optuna.storages.RDBStorage(_storage_url(temporary))
    optuna.create_study(study_name=STUDY_NAME, direction="maximize", storage=storage)
    storage.remove_session()
    storage.engine.dispose()
    temporary.replace(path)
    sync_dir(path.parent)


def _storage_url(path: Path) -> str:
    return f"sqlite:///{path.resolve()}"


def _next_trial(optuna: Any, study: Any, locks: TrialLocks, trials: int, reduction_factor: int) -> Any:
    """A trial whose process was killed, or a new one; None where there are enough."""
    states = optuna.trial.TrialState
    with locks.exclusive():
        known = study.get_trials(deepcopy=False)
        for trial in known:
            if trial.state != states.RUNNING or not locks.acquire(trial.number):
                continue
            if _lost_at_rung(trial, known, reduction_factor):
                study.tell(trial.number, state=states.PRUNED)
                locks.release(trial.number)
                continue
            return optuna.trial.Trial(study, trial._trial_id)
        if len(known) >= trials:
            return None
        fresh = study.ask()
        locks.acquire(fresh.number)
        return fresh


def _lost_at_rung(trial: Any, trials: list[Any], reduction_factor: int) -> bool:
    """Whether a killed trial was to be pruned at the rung it had just reached.

    Optuna's pruner records a rung before it decides, and never decides a recorded rung again.
    """
    rungs = [key for key in trial.system_attrs if key.startswith("completed_rung_")]
    if not rungs:
        return False
    key = f"completed_rung_{len(rungs) - 1}"
    score = trial.system_attrs[key]
    if score != trial.intermediate_values[trial.last_step]:
        return False  # it went on after this rung
    scores = sorted(other.system_attrs[key] for other in trials if key in other.system_attrs)
    return bool(score < scores[-max(1, len(scores) // reduction_factor)])


def _run_trial(
    optuna: Any, study: Any, trial: Any, objective: Callable[[Any], float]
) -> TrainingError | None:
    """Run a trial and record how it ended; returns why it failed. An interrupted trial stays unfinished."""
    states = optuna.trial.TrialState
    try:
        score = objective(trial)
    except optuna.TrialPruned:
        study.tell(trial, state=states.PRUNED)
    except TrainingError as error:
        study.tell(trial, state=states.FAIL)
        return error
    except Exception:
        study.tell(trial, state=states.FAIL)
        raise
    else:
        study.tell(trial, score)
    return None


def _summary(optuna: Any, study: Any, failure: TrainingError | None) -> TrialSummary:
    states = [trial.state for trial in study.trials]
    if optuna.trial.TrialState.COMPLETE not in states:
        if not all(state.is_finished() for state in states):
            raise TrainingError("no trial has finished yet; other processes are still searching")
        raise TrainingError(f"no trial finished; {failure or 'check the bounds of the search space'}")
    stopped = states.count(optuna.trial.TrialState.PRUNED)
    return TrialSummary(dict(study.best_params), float(study.best_value), len(states), stopped)


def import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise TrainingError("a search needs Optuna: pip install 'wordreel[train]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
