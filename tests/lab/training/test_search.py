"""A search that is killed and started again runs the same trials."""

import os
import random
import signal
import time

import pytest

pytest.importorskip("torch")
optuna = pytest.importorskip("optuna")

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.search import search  # noqa: E402

SPACE = {
    "loss.margin": {"low": 0.01, "high": 0.9},
    "run.batch": [16, 32, 64],
    "optimiser.lr": {"low": 1e-5, "high": 1e-2, "log": True},
}
TRIALS = 11


def load(changes):
    return recipes.load("ce-msvd", changes)


def score(recipe, epoch):
    return epoch - 100 * (recipe.loss.margin - 0.2) ** 2 - recipe.run.batch / 64


def trained(recipe, folder, report):
    if recipe.run.batch == 64 and recipe.loss.margin > 0.8:
        raise TrainingError("as some recipes do")
    for epoch in range(1, 5):
        report(epoch, score(recipe, epoch))
    return score(recipe, 4)


def tried(folder):
    """What the study knows of its trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(study_name="wordreel", storage=f"sqlite:///{folder / 'study.sqlite'}")
    return [(t.number, t.state.name, t.params, t.intermediate_values, t.value) for t in study.trials]


def killed(folder, seconds, calls):
    """A search in a process that dies after some time or at a certain report; whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = [calls]

        def dies(recipe, folder, report):
            def counted(epoch, value):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                report(epoch, value)
                if left[0] == 1 and calls % 2:
                    os.kill(os.getpid(), signal.SIGKILL)

            return trained(recipe, folder, counted)

        code = 1
        try:
            search(load, dies, SPACE, folder, trials=TRIALS)
            code = 0
        finally:
            os._exit(code)
    if seconds:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0
    return status == 0


def test_a_killed_search_tries_the_same(tmp_path):
    whole = search(load, trained, SPACE, tmp_path / "whole", trials=TRIALS)
    chance, kills = random.Random(3), 0
    while kills < 4 and not killed(
        tmp_path / "cut",
        chance.uniform(0.05, 0.5) if kills == 2 else 0.0,
        chance.randint(2, 6),
    ):
        kills += 1
    assert kills >= 3
    result = search(load, trained, SPACE, tmp_path / "cut", trials=TRIALS)
    assert tried(tmp_path / "cut") == tried(tmp_path / "whole")
    assert result == whole
    assert {state for _, state, *_ in tried(tmp_path / "cut")} >= {"COMPLETE", "PRUNED"}


def test_a_trial_killed_while_it_is_pruned_is_pruned(tmp_path):
    """Optuna records that a trial reached a rung before it decides, and does not decide again."""
    whole = search(load, trained, SPACE, tmp_path / "whole", trials=TRIALS)
    pruner, killed = optuna.pruners.SuccessiveHalvingPruner, 0
    prune = pruner.prune

    def dies(self, study, trial):
        if prune(self, study, trial):
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    for _ in range(TRIALS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                pruner.prune = dies
                search(load, trained, SPACE, tmp_path / "cut", trials=TRIALS)
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        if status == 0:
            break
        assert os.WIFSIGNALED(status)
        killed += 1
    assert killed == whole.stopped > 0
    assert search(load, trained, SPACE, tmp_path / "cut", trials=TRIALS) == whole
    assert tried(tmp_path / "cut") == tried(tmp_path / "whole")


def test_a_half_created_study_is_created_again(tmp_path):
    """Optuna creates its tables one by one, and cannot open what a kill leaves of them."""
    from sqlalchemy.engine import Connection

    calls = [0]

    def dies(self, statement, *given, **named):
        calls[0] += 1
        if calls[0] == 8:
            raise SystemExit
        return execute(self, statement, *given, **named)

    execute = Connection.execute
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "execute", dies)
        with pytest.raises(SystemExit):
            search(load, trained, SPACE, tmp_path, trials=2)
    assert not (tmp_path / "study.sqlite").exists()
    assert search(load, trained, SPACE, tmp_path, trials=2).trials == 2


def test_the_error_says_why_every_trial_failed(tmp_path):
    def full(recipe, folder, report):
        raise TrainingError(f"{folder.name} cannot be written: no space left")

    with pytest.raises(TrainingError, match="no trial finished; trial-1 cannot be written"):
        search(load, full, SPACE, tmp_path, trials=2)
