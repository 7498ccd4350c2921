"""What a resumed run does, says and refuses; test_kill_matrix proves that it ends with the same bits."""

import subprocess
import sys
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import toy_data, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402


class Stop(Exception):
    pass


def stopped(recipe, held, folder, at):
    """A run that is left after so many steps, each of them saved."""
    from wordreel.lab.training.session import Session

    step, taken = Session.step, []

    def counted(self, *given):
        if len(taken) == at:
            raise Stop
        taken.append(given[1])
        return step(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "step", counted)
        with pytest.raises(Stop):
            train(recipe, held, folder, device="cpu", save_steps=1)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_the_same_batches_are_compiled_wherever_it_begins(tmp_path, monkeypatch, at):
    """Steps of a size that is not compiled round in another way, and so would a run that compiles others."""
    seen = []

    def compiled(work, **settings):
        def noted(batch, tokens, *rest):
            seen.append(len(tokens.mask))
            return work(batch, tokens, *rest)

        return noted

    monkeypatch.setattr(torch, "compile", compiled)
    recipe = toy_recipe("ce", epochs=2, compile=True)  # 12 videos: batches of 5, 5 and 2
    held = toy_data(recipe.model)
    stopped(recipe, held, tmp_path, at)
    seen.clear()
    train(recipe, held, tmp_path, device="cpu", resume=True)
    assert seen == [5] * (4 - min(at, 2))


def test_a_finished_run_has_nothing_left_to_do_and_says_so(tmp_path):
    recipe = toy_recipe("ce", epochs=2)
    held = toy_data(recipe.model)
    assert train(recipe, held, tmp_path, device="cpu").steps == 6
    assert train(recipe, held, tmp_path, device="cpu", resume=True).steps == 0


def test_so_has_one_that_patience_ended(tmp_path):
    recipe = toy_recipe("ce", epochs=30, batch=12, lr=0.5, patience=1)
    held = toy_data(recipe.model)
    first = train(recipe, held, tmp_path, device="cpu")
    assert 0 < first.steps < 30
    again = train(recipe, held, tmp_path, device="cpu", resume=True)
    assert (again.steps, again.history, again.epoch) == (0, first.history, first.epoch)


def test_other_shares_or_spans_are_other_data(tmp_path):
    """They decide which pairs a step sees and what of the video."""
    recipe = toy_recipe("ce", epochs=2)
    held = toy_data(recipe.model)
    stopped(recipe, held, tmp_path, 2)
    told = tuple(tuple(replace(c, start=0.0, end=1.0) for c in here) for here in held.train.captions)
    for other in (replace(held.train, shares=(2.0,)), replace(held.train, captions=told)):
        with pytest.raises(TrainingError, match="other data"):
            train(recipe, replace(held, train=other), tmp_path, device="cpu", resume=True)


HOLDS = """
import sys, time
from pathlib import Path
from wordreel.lab.training.run_lock import run_lock

with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_processes_do_not_write_one_run(tmp_path):
    recipe = toy_recipe("ce", epochs=1)
    held = toy_data(recipe.model)
    child = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(TrainingError, match="another training"):
            train(recipe, held, tmp_path, device="cpu", resume=True)
    finally:
        child.kill()
        child.communicate()
    train(recipe, held, tmp_path, device="cpu", resume=True)  # the lock went with its holder
