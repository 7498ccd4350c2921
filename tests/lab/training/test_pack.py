"""Packed training data: what comes back, and training from it without anything else."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import EXPERTS, TEXT, toy_data, toy_pairs, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.datasets.types import Caption  # noqa: E402
from wordreel.lab.models.config import MINILM  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.pack_file import load_pack, save_pack  # noqa: E402
from wordreel.lab.training.training_data import prepare  # noqa: E402


def test_data_survives_a_file(tmp_path):
    recipe = toy_recipe("ce")
    held = toy_data(recipe.model)
    captions = tuple(
        tuple(
            replace(caption, start=1.5 if n else None, end=2.5 if n else None) for n, caption in enumerate(of)
        )
        for of in held.train.captions
    )
    source = np.arange(len(held.train)) % 2
    given = replace(held.train, captions=captions, source=source, shares=(3.0, 0.5), missing=4)
    held = replace(held, train=given)
    save_pack(tmp_path / "pack", recipe, held)
    back = load_pack(tmp_path / "pack", recipe)
    assert (back.train.name, back.train.ids) == (given.name, given.ids)
    assert (back.train.shares, back.train.missing) == ((3.0, 0.5), 4)
    assert back.train.captions == given.captions
    assert back.train.source.tolist() == source.tolist()
    for name, rows in given.rows.items():
        found = back.train.rows[name]
        assert found.counts.tolist() == rows.counts.tolist()
        np.testing.assert_allclose(found.values, rows.values, atol=np.abs(rows.values).max() / 250)
        np.testing.assert_array_equal(found.times, rows.times)
    np.testing.assert_array_equal(back.train_words.values, held.train_words.values)
    np.testing.assert_array_equal(back.val_words.counts, held.val_words.counts)
    assert back.text_weights is None


def test_what_the_pack_was_not_made_for_is_refused(tmp_path):
    recipe = toy_recipe("ce")
    held = toy_data(recipe.model)
    save_pack(tmp_path / "pack", recipe, held)
    wider = (*EXPERTS[:2], replace(EXPERTS[2], name="smell"))
    with pytest.raises(TrainingError, match=r"another model \(model.experts.smell"):
        load_pack(tmp_path / "pack", replace(recipe, model=replace(recipe.model, experts=wider)))
    fewer = replace(EXPERTS[1], max_tokens=2)
    with pytest.raises(TrainingError, match=r"sound.max_tokens was 4 and is 2"):
        load_pack(tmp_path / "pack", replace(recipe, model=replace(recipe.model, experts=(fewer,))))
    longer = replace(recipe, model=replace(recipe.model, text=replace(TEXT, max_tokens=7)))
    with pytest.raises(TrainingError, match="max_tokens was 5 and is 7"):
        load_pack(tmp_path / "pack", longer)
    with pytest.raises(TrainingError, match="sentence encoder"):
        load_pack(tmp_path / "pack", replace(recipe, start=replace(recipe.start, text="minilm")))
    (tmp_path / "bad").write_bytes(b"nothing")
    with pytest.raises(TrainingError, match="not hold packed training data"):
        load_pack(tmp_path / "bad", recipe)


CAPTIONS = ["a dog runs", "two men talk in a kitchen", "a red car", "the crowd cheers at a concert"]


def described(seed):
    """The recipe's experts, a few videos of each, and captions of real words."""
    config = recipes.load(RECIPE).model
    pairs = toy_pairs(12, seed=seed, experts=config.experts, words=False)
    told = tuple(tuple(Caption(f"{CAPTIONS[(n + k) % 4]} {k}") for k in range(2)) for n in range(len(pairs)))
    return replace(pairs, captions=told)


RECIPE = "own-mmt"
SHORT = ["run.epochs=1", "run.batch=6", "loss.kind=info-nce", "loss.soft_targets=0.2"]
ALONE = """
import sys
for name in ("av", "onnx", "onnxruntime", "typer", "rich", "PIL", "scipy", "faiss", "matplotlib"):
    sys.modules[name] = None
import torch
torch.set_num_threads(1)
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.loop import train
from wordreel.lab.training.pack_file import load_pack
recipe = recipes.load("own-mmt", sys.argv[3:])
result = train(recipe, load_pack(sys.argv[1], recipe), sys.argv[2], device="cpu")
print(result.steps, result.best)
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("pack") / "own.pack"
    recipe = recipes.load(RECIPE, SHORT)
    data = prepare(recipe, described(0), described(1))
    assert data.sentence_tokens is data.train_words
    save_pack(path, recipe, data)
    return path, data


def test_a_model_is_packed_with_its_sentence_encoder(packed):
    path, data = packed
    recipe = recipes.load(RECIPE, SHORT)
    back = load_pack(path, recipe)
    assert path.stat().st_size < 25_000_000
    assert back.sentence_tokens is back.train_words
    np.testing.assert_array_equal(back.train_words.values, data.train_words.values)
    from wordreel.lab.models.text.pretrained import minilm_weights

    for name, array in minilm_weights().items():
        scale = np.abs(array).max(axis=-1, keepdims=True)
        np.testing.assert_allclose(back.text_weights[name] + 0 * array, array, atol=float(scale.max()) / 250)
    assert back.text_weights["embeddings.word_embeddings.weight"].shape == (MINILM.vocabulary, 384)


def test_training_from_a_pack_needs_nothing_else(packed, tmp_path):
    """No media, ONNX or command-line package is imported, and no weight store is read."""
    from wordreel.lab.models.checkpoint import load_module

    root = Path(__file__).parents[3]
    paths = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH", "")]))
    env = {
        **os.environ,
        "PYTHONPATH": paths,
        "WORDREEL_WEIGHTS": str(tmp_path / "none"),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(packed[0]), str(tmp_path / "run"), *SHORT],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 ")
    _, facts = load_module(tmp_path / "run" / "best")
    assert facts["training"]["recipe"]["name"] == RECIPE


def test_teachers_read_the_packed_captions(packed, tmp_path):
    from wordreel.lab.training.open_data import with_teachers

    recipe = recipes.load(RECIPE, SHORT)
    data = load_pack(packed[0], recipe)
    first = train(recipe, data, tmp_path / "first", device="cpu")
    student = recipes.load(RECIPE, [*SHORT, f'teach.teachers=["{tmp_path / "first"}"]'])
    taught = with_teachers(student, data)
    assert taught.teachers is not None
    second = train(student, taught, tmp_path / "second", device="cpu")
    assert second.history[0]["loss"] > first.history[0]["loss"]  # the divergence is added
    with pytest.raises(TrainingError, match="no teacher"):
        with_teachers(recipes.load(RECIPE, ['teach.teachers=["nowhere"]']), data)
    with pytest.raises(TrainingError, match="not packed"):
        save_pack(tmp_path / "x", student, taught)


def test_soft_targets_need_captions_of_words():
    recipe = toy_recipe("ce")
    recipe = replace(recipe, loss=replace(recipe.loss, kind="info-nce", soft_targets=0.2))
    bare = toy_pairs()
    bare = replace(bare, captions=tuple(tuple(Caption("") for _ in of) for of in bare.captions))
    with pytest.raises(TrainingError, match="soft targets"):
        prepare(recipe, bare)
    data = prepare(recipe, toy_pairs())  # captions beside ready word features
    assert len(data.sentence_tokens) == int(data.train.counts.sum())
    assert data.sentence_tokens.values.dtype.kind == "i"
