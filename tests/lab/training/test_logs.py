"""TensorBoard events of a run, read by TensorBoard itself."""

import json

import pytest

torch = pytest.importorskip("torch")
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

from tests.lab.training.toys import toy_data, toy_recipe  # noqa: E402

from wordreel.lab.training import logs  # noqa: E402
from wordreel.lab.training.logs import TensorBoardLog  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402


def scalars(folder):
    """What TensorBoard shows of a folder: (step, value) by tag."""
    shown = accumulator.EventAccumulator(str(folder)).Reload()
    return {tag: [(e.step, e.value) for e in shown.Scalars(tag)] for tag in shown.Tags()["scalars"]}


def test_every_figure_of_the_log_is_an_event(tmp_path):
    recipe = toy_recipe("ce", epochs=3)
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    shown = scalars(tmp_path)
    assert set(shown) == {key for row in rows for key in row} - {"step"}
    for tag, points in shown.items():
        assert points == [(row["step"], pytest.approx(row[tag], rel=1e-6)) for row in rows if tag in row]


@pytest.mark.parametrize("every", [2, 3])  # 9 steps, 3 an epoch: saved within an epoch, or at its end
def test_a_resumed_run_shows_each_step_once(tmp_path, monkeypatch, every):
    """A run dies after it logged an epoch and before it saved the state that knows of it."""
    recipe = toy_recipe("ce", epochs=3)
    held = toy_data(recipe.model)
    add, calls = TensorBoardLog.add, []

    def dies(self, row):
        add(self, {**row, "loss": -1.0 if len(calls) == 1 else row["loss"]})
        calls.append(row["step"])
        if len(calls) == 2:
            raise RuntimeError

    monkeypatch.setattr(TensorBoardLog, "add", dies)
    with pytest.raises(RuntimeError):
        train(recipe, held, tmp_path, device="cpu", save_steps=every)
    monkeypatch.undo()
    assert scalars(tmp_path)["loss"][-1] == (6, -1.0)
    result = train(recipe, held, tmp_path, device="cpu", resume=True)
    assert calls == [3, 6]
    assert scalars(tmp_path)["loss"] == [
        (row["step"], pytest.approx(row["loss"], rel=1e-6)) for row in result.history
    ]


def test_an_overwritten_run_is_hidden(tmp_path):
    recipe = toy_recipe("ce", epochs=3)
    held = toy_data(recipe.model)
    train(recipe, held, tmp_path, device="cpu")
    again = train(toy_recipe("ce", epochs=2, margin=0.4), held, tmp_path, device="cpu")
    assert [step for step, _ in scalars(tmp_path)["loss"]] == [row["step"] for row in again.history]


def test_without_tensorboard_a_run_goes_through(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "tensorboard_installed", lambda: False)
    recipe = toy_recipe("ce", epochs=1)
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert not list(tmp_path.glob("events.*"))
    assert (tmp_path / "log.csv").is_file()
