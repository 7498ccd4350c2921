"""What goes wrong in training, and that nothing is lost by it."""

import errno
import json
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tests.lab.training.toys import toy_data, toy_pairs, toy_recipe, words_of  # noqa: E402

from wordreel.errors import TrainingError, WeightsError  # noqa: E402
from wordreel.lab.models.checkpoint import load_module, save  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training import saved_state  # noqa: E402
from wordreel.lab.training.init_weights import fine_tune, text_folder  # noqa: E402
from wordreel.lab.training.loop import pick_device, train  # noqa: E402
from wordreel.lab.training.open_data import add_teachers  # noqa: E402
from wordreel.lab.training.run_lock import TrainingInterrupted, check_writable, run_lock, stop_on_signal  # noqa: E402  # noqa: E402
from wordreel.lab.training.settings import StartSettings, TeachSettings  # noqa: E402
from wordreel.lab.training.training_data import TrainingData, check_words  # noqa: E402


@pytest.fixture
def heard():
    """Signals as in a terminal: a test may itself run in the background, where Ctrl-C is ignored."""
    fresh = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in fresh.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("at", [2, 3])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_state_and_goes_on(tmp_path, monkeypatch, how, at):
    recipe = toy_recipe("ce", epochs=3)
    held = toy_data(recipe.model)
    whole = train(recipe, held, tmp_path / "whole", device="cpu")
    from wordreel.lab.training.session import Session

    step = Session.step

    def signalled(self, batch, number, factor):
        if number == at:
            os.kill(os.getpid(), how)
        return step(self, batch, number, factor)

    monkeypatch.setattr(Session, "step", signalled)
    with pytest.raises(TrainingInterrupted, match=f"step {at + 1} of 9"):
        train(recipe, held, tmp_path / "cut", device="cpu")
    monkeypatch.undo()
    result = train(recipe, held, tmp_path / "cut", device="cpu", resume=True)
    for part in ("best", "last"):
        one, other = (place / part / "model.safetensors" for place in (whole.out, result.out))
        assert one.read_bytes() == other.read_bytes()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heard")
def test_asked_twice_it_ends_at_once():
    with stop_on_signal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    with stop_on_signal(enabled=False):
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heard")
def test_what_is_ignored_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with stop_on_signal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.requested


def test_two_trainings_do_not_share_a_folder(tmp_path):
    made, said = toy_recipe("ce", epochs=1), []

    def other(row):
        def tried():
            try:
                train(made, toy_data(made.model), tmp_path, device="cpu")
            except TrainingError as error:
                said.append(str(error))

        thread = threading.Thread(target=tried)
        thread.start()
        thread.join()

    train(made, toy_data(made.model), tmp_path, device="cpu", on_epoch=other)
    assert len(said) == 1
    assert "another training is writing" in said[0]
    check_writable(tmp_path)  # let go of at the end


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="--out DIR"):
        train(
            toy_recipe("ce", epochs=1),
            toy_data(toy_recipe("ce").model),
            tmp_path / "file" / "run",
            device="cpu",
        )
    with pytest.raises(BrokenPipeError), run_lock(tmp_path / "run"):
        raise BrokenPipeError(errno.EPIPE, "the reader has gone")


def test_a_full_disk_leaves_the_old_state_whole(tmp_path, monkeypatch):
    recipe = toy_recipe("ce", epochs=1)
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    before = (tmp_path / "state.safetensors").read_bytes()
    from wordreel.util import atomic

    def full(path, data):
        path.write_bytes(data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "write_and_sync", full)
    with pytest.raises(TrainingError, match=r"No space left on device .*; free disk space"):
        train(recipe.with_seed(1), toy_data(recipe.model), tmp_path, device="cpu")
    assert (tmp_path / "state.safetensors").read_bytes() == before
    assert not list(tmp_path.glob("**/*.new"))


def rewritten(folder, change):
    """The state of a run with its facts or tensors changed."""
    path = folder / saved_state.FILE
    with safe_open(str(path), "pt") as file:
        metadata = file.metadata()
    facts = json.loads(metadata[saved_state.KEY])
    held = load_file(path)
    change(facts, held)
    save_file(held, path, {**metadata, saved_state.KEY: json.dumps(facts)})


@pytest.mark.parametrize(("change", "message"), [
    (lambda facts, held: facts["run"].pop("history"), "damaged"),
    (lambda facts, held: facts.update(step="x"), "damaged"),
    (lambda facts, held: facts.update(format=99), "another version"),
    (lambda facts, held: held.pop("optimiser.0.exp_avg"), "damaged"),
    (lambda facts, held: next(iter(held.values())).view(-1)[:1].add_(1), "damaged"),
])  # fmt: skip
def test_a_state_that_is_not_what_was_written(tmp_path, change, message):
    recipe = toy_recipe("ce", epochs=1)
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    train(recipe, toy_data(recipe.model), tmp_path, device="cpu", resume=True)
    rewritten(tmp_path, change)
    with pytest.raises(TrainingError, match=f"{message}.*--overwrite"):
        train(recipe, toy_data(recipe.model), tmp_path, device="cpu", resume=True)


def test_without_an_epoch_there_is_a_model_all_the_same(tmp_path):
    recipe = toy_recipe("ce", epochs=0)
    result = train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert result.epoch == 0
    assert load_module(result.best)[0].config == recipe.model


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_named(value):
    recipe = toy_recipe("ce")
    pairs = toy_pairs(12)
    pairs.rows["scene"].values[pairs.rows["scene"].starts[3]] = value
    words = words_of(pairs, recipe.model)
    with pytest.raises(TrainingError, match=r"scene of 1 videos .* the first of toy3; "):
        TrainingData(pairs, words)
    good = toy_pairs(12)
    with pytest.raises(TrainingError, match="scene"):
        TrainingData(good, words_of(good, recipe.model), pairs, words)
    words.values[0] = value
    with pytest.raises(TrainingError, match="word features"):
        TrainingData(good, words)


def test_weights_that_are_no_numbers_stop_a_run(tmp_path, monkeypatch):
    from wordreel.lab.training.session import Session

    step = Session.step

    def broken(self, *asked):
        loss = step(self, *asked)
        with torch.no_grad():
            next(self.module.parameters()).fill_(torch.nan)
        return torch.zeros_like(loss)

    monkeypatch.setattr(Session, "step", broken)
    recipe = toy_recipe("ce", epochs=1)
    with pytest.raises(TrainingError, match=r"weights are no longer numbers near step 3; lower optimiser"):
        train(recipe, toy_data(recipe.model), tmp_path, device="cpu")
    assert not (tmp_path / "best").exists()


def test_one_video_is_too_few(tmp_path):
    recipe = toy_recipe("ce", captions="all")
    with pytest.raises(TrainingError, match="has one video"):
        train(recipe, toy_data(recipe.model, many=1, captions=5, val=False), tmp_path, device="cpu")


def test_devices_are_named():
    with pytest.raises(TrainingError, match="there is no device 'toaster'"):
        pick_device("toaster")
    with pytest.raises(TrainingError, match="--device cpu"):
        pick_device("mps")


@pytest.mark.parametrize(("change", "message"), [
    ("run.seed=-1", "seed"),
    ("loss.margin=nan", "loss.margin must be a finite number, not nan"),
    ("optimiser.lr=inf", "not inf"),
    ("optimiser.betas=[1, 2]", "betas"),
    ("optimiser.lookahead_share=0.5", "did you mean lookahead"),
    ("optimiser.lookahead_alpha=1.5", "lookahead_alpha must be at least 0 and at most 1"),
    ("data.limit=-1", "data.limit must be at least 0, not -1"),
    ("teach.weight=-1.0", "weight"),
    ("model.dim=0", "model.dim must be at least 1"),
    ("model.text.max_tokens=-1", "model.text.max_tokens must be at least 0"),
    ("model.text=3", "model.text is a section"),
    ("model.expert=3", "model.expert is a section"),
    ("model.expert.appearance=3", "model.expert.NAME"),
    ("model.base=[1]", "there is no model"),
    ("model.kind=[1]", "model.kind is one of"),
    ("model.experts=[]", "at least one"),
    ('model.experts=["ocr", "ocr"]', "each once"),
])  # fmt: skip
def test_values_that_no_recipe_takes(change, message):
    with pytest.raises(TrainingError, match=message):
        recipes.load("own-ce", [change])


def test_heads_share_evenly():
    with pytest.raises(TrainingError, match="5 heads do not share"):
        recipes.load("own-mmt", ["model.heads=5"])


def test_the_captions_encoder_must_fit():
    config = toy_recipe("ce").model
    words = words_of(toy_pairs(4), config)
    with pytest.raises(TrainingError, match=r"set model\.text\.dim=7"):
        check_words(words, replace(config.text, dim=300))
    mmt = toy_recipe("mmt").model
    numbers = words_of(toy_pairs(4), mmt)
    check_words(numbers, mmt.text)
    network = mmt.text.network
    with pytest.raises(TrainingError, match=r"network\.vocabulary"):
        check_words(numbers, replace(mmt.text, network=replace(network, vocabulary=3)))
    with pytest.raises(TrainingError, match=r"max_tokens=2"):
        check_words(numbers, replace(mmt.text, network=replace(network, positions=2)))


def test_a_training_folder_stands_for_its_best_model(tmp_path):
    recipe = toy_recipe("mmt", epochs=1)
    train(recipe, toy_data(recipe.model), tmp_path / "first", device="cpu")
    module, _ = load_module(tmp_path / "first" / "best")
    assert fine_tune(module, tmp_path / "first") == []
    start = StartSettings(text=str(tmp_path / "gone"), model=str(tmp_path / "first"))
    text = replace(recipe.model.text, source="wordpiece")
    assert text_folder(text, start) == tmp_path / "gone"
    (tmp_path / "first" / "best" / "vocab.txt").write_text("[CLS]")
    assert text_folder(text, start) == tmp_path / "first" / "best"


def test_a_teacher_that_is_not_there():
    recipe = replace(toy_recipe("ce"), teach=TeachSettings(("nobody",)))
    with pytest.raises(TrainingError, match="there is no teacher 'nobody'"):
        add_teachers(recipe, toy_pairs(4))


def test_seeds_of_a_training_are_named(tmp_path):
    recipe = toy_recipe("ce", epochs=0)
    for seed in (0, 1):
        train(recipe.with_seed(seed), toy_data(recipe.model), tmp_path / f"seed-{seed}", device="cpu")
    with pytest.raises(WeightsError, match=r"name one of \S+seed-0, \S+seed-1"):
        load_module(tmp_path)


def test_weights_of_another_shape_are_told_in_one_line(tmp_path):
    recipe = toy_recipe("ce", epochs=0)
    result = train(recipe, toy_data(recipe.model), tmp_path / "run", device="cpu")
    module, _ = load_module(result.best)
    module.config = replace(module.config, dim=9)
    save(tmp_path / "odd", module, "odd")
    with pytest.raises(WeightsError, match="does not fit its own description") as caught:
        load_module(tmp_path / "odd")
    assert "\n" not in str(caught.value)
