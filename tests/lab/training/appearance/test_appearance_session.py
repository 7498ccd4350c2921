from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.lab.training.appearance.tiny import MODEL, data, recipe, start
from torch.nn.functional import log_softmax, normalize

from wordreel.errors import TrainingError, WordreelError
from wordreel.experts.appearance_file import AppearanceFile
from wordreel.lab.models.appearance.config import PictureTextConfig, parameter_counts
from wordreel.lab.models.appearance.picture_text import PictureText
from wordreel.lab.models.checkpoint import load_picture_text
from wordreel.lab.training.appearance.augment import as_pixels
from wordreel.lab.training.appearance.export import export_appearance, measure_cost
from wordreel.lab.training.appearance.pack_file import save_pictures
from wordreel.lab.training.appearance.session import AppearanceSession, PictureBatch
from wordreel.lab.training.appearance.settings import FineTuneSettings, PictureSettings
from wordreel.lab.training.appearance.start import init_network
from wordreel.lab.training.distributed import World
from wordreel.lab.training.interrupt import TrainingInterrupted
from wordreel.lab.training.loop import train
from wordreel.models.model_store import open_checkpoint
from wordreel.retrieval.caption_ranks import Captions, text_to_video
from wordreel.runtime.nets.efficientnet_lite import fold
from wordreel.runtime.store import WeightStore

CPU = torch.device("cpu")
STILL = PictureSettings(crop=1.0, aspect=0.0, flip=0.0, brightness=0.0, contrast=0.0, saturation=0.0)


def session(**changes):
    return AppearanceSession(replace(recipe(), **changes), data(), CPU, World())


@pytest.mark.parametrize("soft", [0.0, 0.3])
def test_the_loss_equals_the_slow_one(soft):
    """InfoNCE both ways without pairs of the same item, and KL from the former classes, pair by pair."""
    whole = recipe()
    loss = replace(whole.loss, soft_targets=soft, soft_temperature=0.2, learn_temperature=False)
    model = replace(MODEL, dropout=0.0, text_dropout=0.0)
    opened = session(pictures=STILL, loss=loss, model=model, fine_tune=FineTuneSettings(0.7, 0.9))
    module = opened.module.trained.eval()
    batch = PictureBatch(np.array([0, 3, 5, 3]), np.array([0, 4, 7, 5]), np.array([0, 4, 7, 5]))
    found = float(opened._loss(batch).detach())
    images = torch.from_numpy(opened.data.train.decode(16))
    with torch.no_grad():
        features = module.network(as_pixels(images[batch.pictures]))
        pictures = normalize(module.picture_head(features), dim=1)
        sentences = torch.from_numpy(opened.data.train.sentences[batch.captions])
        texts = normalize(sentences + module.text_head(sentences), dim=1)
        now = log_softmax(module.network.classes(features), dim=1)
    fresh = PictureText(model).eval()
    init_network(fresh.network, start())
    with torch.no_grad():
        before = log_softmax(fresh.network.classes(fresh.network(as_pixels(images[batch.pictures]))), dim=1)
    total = 0.0
    for i in range(4):
        others = [j for j in range(4) if j == i or batch.items[j] != batch.items[i]]
        weights = torch.tensor([float(sentences[i] @ sentences[j]) / 0.2 for j in others]).softmax(0)
        for side in (texts @ pictures.T, pictures @ texts.T):
            logs = torch.tensor([float(side[i, j]) / 0.05 for j in others]).log_softmax(0)
            for at, j in enumerate(others):
                target = (1 - soft) * (j == i) + soft * float(weights[at])
                total -= target * float(logs[at]) / 8
        total += 0.7 * float((before[i].exp() * (before[i] - now[i])).sum()) / 4
    assert found == pytest.approx(total, rel=2e-3)
    assert float((before - now).abs().max()) < 1e-4  # nothing was trained yet


def test_every_item_is_shown_by_its_own_pictures():
    opened = session()
    train_set = opened.data.train
    seen = set()
    for epoch in range(12):
        for batch in opened.batches(epoch, 0):
            owners = np.searchsorted(train_set.firsts, batch.pictures, side="right") - 1
            np.testing.assert_array_equal(owners, batch.items)
            seen |= set(batch.pictures.tolist())
    assert seen == set(range(len(train_set.lengths)))
    again = [batch.pictures.tolist() for batch in opened.batches(2, 1)]
    assert again == [batch.pictures.tolist() for batch in session().batches(2, 0)][1:]


def test_figures_of_each_source_are_among_its_own_items():
    opened = session()
    found = opened.measure()
    val, module = opened.data.val, opened.module.average
    images = torch.from_numpy(val.decode(16))
    with torch.no_grad():
        embedded = module.embed_features(module.network(as_pixels(images)))
        texts = module.embed_sentences(torch.from_numpy(val.sentences))
    items = [
        normalize(embedded[first : first + count].mean(0), dim=0)
        for first, count in zip(val.firsts, val.counts, strict=True)
    ]
    owner = np.repeat(np.arange(8), val.pairs.counts)
    for name, here in (("a", range(4)), ("b", range(4, 8))):
        rows = [n for n in range(len(owner)) if owner[n] in here]
        matrix = (texts[rows] @ torch.stack([items[n] for n in here]).T).numpy()
        captions = Captions(4, owner[rows] - here[0], np.ones(len(rows), bool))
        assert found.by_source[name] == text_to_video(matrix, captions)
    assert found.t2v.r1 == pytest.approx((found.by_source["a"].r1 + found.by_source["b"].r1) / 2)
    assert found.t2v.queries == len(owner)
    assert "t2v a_r1" in found.row()


def test_training_learns_and_saves_the_average(tmp_path):
    result = train(recipe(epochs=8), data(), tmp_path / "run", device="cpu")
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    assert "t2v b_r5" in result.history[-1]
    module, facts = load_picture_text(result.best)
    assert module.config == MODEL
    assert facts["training"]["pictures"] == 18
    with pytest.raises(WordreelError, match="does not search") as refused:
        open_checkpoint(result.best, WeightStore())
    assert refused.value.next_step.command == f"export {result.best}"


def test_a_stopped_run_resumes_as_if_it_had_not(tmp_path):
    whole = train(recipe(), data(), tmp_path / "whole", device="cpu")
    steps = []

    def stop(row):
        steps.append(row["step"])
        if len(steps) == 2:
            raise TrainingInterrupted("here")

    with pytest.raises(TrainingInterrupted):
        train(recipe(), data(), tmp_path / "parts", device="cpu", on_epoch=stop, save_steps=3)
    resumed = train(recipe(), data(), tmp_path / "parts", device="cpu", resume=True)
    assert 0 < resumed.steps < whole.history[-1]["step"]
    one, other = (load_picture_text(some.last)[0].state_dict() for some in (whole, resumed))
    for name, value in one.items():
        assert torch.equal(value, other[name]), name
    less = replace(data(), val=None)
    with pytest.raises(TrainingError, match="other data"):
        train(recipe(), less, tmp_path / "parts", device="cpu", resume=True)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(TrainingError, match="torchrun"):
        AppearanceSession(recipe(), data(), CPU, World(size=2))
    wrong = data()
    wrong.start.pop("_conv_head.weight")
    with pytest.raises(TrainingError, match="_conv_head"):
        AppearanceSession(recipe(), wrong, CPU, World())


def test_the_exported_file_is_the_network_with_eight_bits(tmp_path):
    result = train(recipe(), data(), tmp_path / "run", device="cpu")
    save_pictures(tmp_path / "p", recipe(), data())
    digest = export_appearance(result.best, tmp_path / "a.safetensors")
    file = AppearanceFile(tmp_path / "a.safetensors")
    assert file.digest == digest
    assert file.card["size"] == 16
    assert file.card["training"]["data"] == "a + b"
    assert "research" in file.card["licence"]
    state = load_picture_text(result.best)[0].network.state_dict()
    for name, array in fold({key: value.numpy() for key, value in state.items()}).items():
        np.testing.assert_allclose(file.layers()[name], array, atol=np.abs(array).max() / 127)


def test_what_eight_bits_cost(tmp_path):
    """The exported graph has the strides of the real network, so this one has its first halving block."""
    result = train(recipe(epochs=1), data(), tmp_path / "run", device="cpu")
    save_pictures(tmp_path / "p", recipe(), data())
    export_appearance(result.best, tmp_path / "a.safetensors")
    cost = measure_cost(result.best, tmp_path / "a.safetensors", tmp_path / "p")
    assert 0.98 < cost["least_cosine"] <= cost["cosine"] < 1
    assert cost["recall"].keys() == {"a", "b"}
    assert len(cost["recall"]["a"]["before"]) == len(cost["recall"]["a"]["after"]) == 3
    save_pictures(tmp_path / "q", recipe(), replace(data(), val=None))
    with pytest.raises(TrainingError, match="no validation part"):
        measure_cost(result.best, tmp_path / "a.safetensors", tmp_path / "q")


def test_parameters_are_counted_without_torch():
    for config in (MODEL, PictureTextConfig()):
        module = PictureText(config)
        assert sum(parameter_counts(config).values()) == sum(p.numel() for p in module.parameters())
