"""Whole runs: learned by heart, the same again, stopped and resumed, and what they leave behind."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import toy_data, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.models.checkpoint import load_module, read_facts  # noqa: E402
from wordreel.lab.training import loop  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.training_data import TrainingData  # noqa: E402


def weights(folder):
    return load_module(folder)[0].state_dict()


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("kind", ["ce", "moee", "mmt"])
def test_a_small_set_is_learned_by_heart(tmp_path, kind):
    recipe = toy_recipe(kind, epochs=50, batch=12, validate_every=10, lr=2e-2, gamma=0.97)
    if kind == "mmt":  # dropout keeps it from perfection
        config = replace(recipe.model, dropout=0.0)
        recipe = replace(
            recipe,
            model=replace(
                config, text=replace(config.text, network=replace(config.text.network, dropout=0.0))
            ),
        )
    result = train(recipe, toy_data(recipe.model, captions=1), tmp_path, device="cpu")
    assert result.figures.t2v.r1 == 100
    assert result.figures.v2t.r1 == 100
    assert result.history[-1]["loss"] < 0.2 * result.history[0]["loss"]


@pytest.mark.parametrize("changes", [
    {"kind": "ranger", "lr": 0.05},
    {"kind": "radam", "lr": 0.01},
    {"kind": "adamw", "clip": 0.5},
    {"expert_dropout": 0.5},
    {"captions": "all"},
    {"precision": "bfloat16"},
])  # fmt: skip
def test_every_way_of_training_brings_the_loss_down(tmp_path, changes):
    kind = changes.pop("kind", None)
    precision = changes.pop("precision", None)
    recipe = toy_recipe("ce", epochs=25, batch=12, validate_every=25, **changes)
    if kind:
        recipe = replace(recipe, optimiser=replace(recipe.optimiser, kind=kind))
    if precision:
        recipe = replace(recipe, run=replace(recipe.run, precision=precision))
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert result.history[-1]["loss"] < 0.8 * result.history[0]["loss"]


@pytest.mark.parametrize("kind", ["info-nce", "dual-softmax"])
def test_other_losses(tmp_path, kind):
    recipe = toy_recipe("ce", epochs=20, batch=12, validate_every=20)
    recipe = replace(recipe, loss=replace(recipe.loss, kind=kind, temperature=0.1))
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert result.history[-1]["loss"] < 0.8 * result.history[0]["loss"]


def test_seeds_are_reproducible_and_differ(tmp_path):
    recipe = toy_recipe("mmt", epochs=2)
    held = toy_data(recipe.model)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(recipe.with_seed(seed), held, tmp_path / name, device="cpu")
    assert same(weights(tmp_path / "a/last"), weights(tmp_path / "b/last"))
    assert not same(weights(tmp_path / "a/last"), weights(tmp_path / "c/last"))
    assert (tmp_path / "a/best/model.safetensors").read_bytes() == (
        tmp_path / "b/best/model.safetensors"
    ).read_bytes()


class Stop(Exception):
    pass


@pytest.mark.parametrize("model", ["mmt", "ce"])
@pytest.mark.parametrize("kind", ["adam", "ranger"])
@pytest.mark.parametrize("at", [2, 4, 7])
def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path, monkeypatch, model, kind, at):
    recipe = toy_recipe(model, epochs=4, patience=0)
    recipe = replace(recipe, optimiser=replace(recipe.optimiser, kind=kind))
    held = toy_data(recipe.model)
    whole = train(recipe, held, tmp_path / "whole", device="cpu")

    def stop(now):
        if now.done >= at:
            raise Stop

    monkeypatch.setattr(loop, "REPORT_EVERY", 0.0)
    with pytest.raises(Stop):
        train(recipe, held, tmp_path / "cut", device="cpu", on_progress=stop, save_steps=1)
    result = train(recipe, held, tmp_path / "cut", device="cpu", resume=True)
    assert same(weights(whole.last), weights(result.last))
    assert (whole.best / "model.safetensors").read_bytes() == (result.best / "model.safetensors").read_bytes()
    figures = [{k: v for k, v in row.items() if "second" not in k} for row in whole.history]
    assert figures == [{k: v for k, v in row.items() if "second" not in k} for row in result.history]


def test_resuming_another_recipe_or_other_data_is_refused(tmp_path):
    recipe = toy_recipe("ce", epochs=1)
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    with pytest.raises(TrainingError, match=r"another recipe \(run.epochs was 1 and is 2\)"):
        train(toy_recipe("ce", epochs=2), toy_data(recipe.model), tmp_path, device="cpu", resume=True)
    with pytest.raises(TrainingError, match="other data"):
        train(recipe, toy_data(recipe.model, many=13), tmp_path, device="cpu", resume=True)


def test_what_a_run_leaves_behind(tmp_path, real_charts):
    recipe = toy_recipe("ce", epochs=3)
    heard = []
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu", name="pets", on_epoch=heard.append,
                  on_progress=lambda now: heard.append(now))  # fmt: skip
    rows = list(csv.DictReader((tmp_path / "log.csv").open()))
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3]
    assert lines == list(result.history)
    assert {"loss", "lr", "t2v_r1", "v2t_r10", "t2v_geometric_mean"} <= set(rows[0])
    facts = read_facts(result.best)
    assert facts["name"] == "pets"
    assert facts["training"]["recipe"]["run"]["epochs"] == 3
    assert facts["training"]["validation"]["t2v_r1"] == result.figures.t2v.r1
    assert "<svg" in (tmp_path / "loss.svg").read_text()
    assert "R@10" in (tmp_path / "recall.svg").read_text()
    told = [one for one in heard if not isinstance(one, dict)]
    assert told[-1].done == told[-1].total == 9
    assert told[-1].steps_per_second > 0


def test_the_best_epoch_is_kept_and_patience_ends_a_run(tmp_path):
    recipe = toy_recipe("ce", epochs=30, batch=12, lr=0.5, patience=3)
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    scores = [row["t2v_geometric_mean"] for row in result.history]
    assert result.score == max(scores)
    assert scores[result.epoch - 1] == result.score
    assert len(scores) == result.epoch + 3 or len(scores) == 30
    last = train(replace(recipe, run=replace(recipe.run, select="last", epochs=2)), toy_data(recipe.model),
                 tmp_path / "last", device="cpu")  # fmt: skip
    assert last.epoch == 2
    assert same(weights(last.best), weights(last.last))


def test_without_validation_the_last_epoch_is_the_model(tmp_path):
    recipe = toy_recipe("ce", epochs=2)
    result = train(recipe, toy_data(recipe.model, val=False), tmp_path, device="cpu")
    assert result.figures is None
    assert same(weights(result.best), weights(result.last))


def test_experts_that_no_video_has_do_no_harm(tmp_path):
    recipe = toy_recipe("ce", epochs=2)
    held = toy_data(recipe.model)
    fewer = replace(held.train, rows={"scene": held.train.rows["scene"]})
    result = train(
        recipe, TrainingData(fewer, held.train_words, fewer, held.train_words), tmp_path, device="cpu"
    )
    assert np.isfinite(result.history[-1]["loss"])


def test_a_loss_that_is_no_number_stops_with_advice(tmp_path):
    recipe = toy_recipe("ce", epochs=2)
    held = toy_data(recipe.model)
    broken = held.train.rows["scene"]
    broken.values[:] = np.inf
    with pytest.raises(TrainingError, match=r"optimiser\.lr"):
        train(recipe, held, tmp_path, device="cpu")


def test_a_frozen_network_is_run_once_over_the_captions(tmp_path, monkeypatch):
    from wordreel.lab.models.text.bert import Bert

    recipe = toy_recipe("mmt", epochs=3)
    recipe = replace(recipe, model=replace(recipe.model, text=replace(recipe.model.text, frozen=True)))
    calls = []
    forward = Bert.forward
    monkeypatch.setattr(Bert, "forward", lambda self, *a: calls.append(1) or forward(self, *a))
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert len(calls) == 2  # training and validation captions
    assert np.isfinite(result.history[-1]["loss"])


@pytest.mark.parametrize(("kind", "backend"), [("ce", "aot_eager"), ("mmt", "eager")])
def test_a_step_is_one_graph(tmp_path, monkeypatch, kind, backend):
    """Nothing in a step makes the compiler stop; the short last batch is not compiled."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend, fullgraph=True))
    recipe = toy_recipe(kind, epochs=1)
    held = toy_data(recipe.model)
    plain = train(recipe, held, tmp_path / "plain", device="cpu").history[0]["loss"]
    recipe = replace(recipe, run=replace(recipe.run, compile=True))
    result = train(recipe, held, tmp_path / "fast", device="cpu").history[0]["loss"]
    # MMT's dropout falls elsewhere when batches have another width.
    assert result == pytest.approx(plain, rel=1e-4 if kind == "ce" else 0.2)


@pytest.mark.slow
def test_compiled_training_is_the_same_training(tmp_path):
    recipe = toy_recipe("ce", epochs=1, batch=4, drop_last=True, validate_every=1)
    held = toy_data(recipe.model, many=8)
    plain = train(recipe, held, tmp_path / "plain", device="cpu")
    with_it = replace(recipe, run=replace(recipe.run, compile=True))
    fast = train(with_it, held, tmp_path / "fast", device="cpu")
    assert fast.history[0]["loss"] == pytest.approx(plain.history[0]["loss"], rel=1e-4)
