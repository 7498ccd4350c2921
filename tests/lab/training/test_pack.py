"""Packed training data: what comes back, and training from it without anything else."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import EXPERTS, TEXT, toy_data, toy_recipe  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.pack_file import load_pack, save_pack  # noqa: E402
from wordreel.lab.training.teachers import Teachers  # noqa: E402


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
    (tmp_path / "bad").write_bytes(b"nothing")
    with pytest.raises(TrainingError, match="not hold packed training data"):
        load_pack(tmp_path / "bad", recipe)


ALONE = """
import sys
for name in ("av", "onnx", "onnxruntime", "typer", "rich", "PIL", "scipy", "faiss", "matplotlib"):
    sys.modules[name] = None
import torch
torch.set_num_threads(1)
from tests.lab.training.toys import toy_recipe
from wordreel.lab.training.loop import train
from wordreel.lab.training.pack_file import load_pack
recipe = toy_recipe("ce", epochs=1)
result = train(recipe, load_pack(sys.argv[1], recipe), sys.argv[2], device="cpu")
print(result.steps, result.best)
"""


def test_training_from_a_pack_needs_nothing_else(tmp_path):
    """No media, ONNX or command-line package is imported, and no weight store is read."""
    recipe = toy_recipe("ce", epochs=1)
    save_pack(tmp_path / "pack", recipe, toy_data(recipe.model))
    root = Path(__file__).parents[3]
    paths = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    env = {
        **os.environ,
        "PYTHONPATH": paths,
        "WORDREEL_WEIGHTS": str(tmp_path / "none"),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path / "pack"), str(tmp_path / "run")],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 ")


def test_teachers_and_frames_are_not_packed(tmp_path):
    recipe = toy_recipe("ce")
    data = toy_data(recipe.model)
    teachers = Teachers(())
    with pytest.raises(TrainingError, match="not packed"):
        save_pack(tmp_path / "pack", recipe, replace(data, teachers=teachers))
    with pytest.raises(TrainingError, match="cannot be packed"):
        save_pack(tmp_path / "pack", recipes.load("small-clip"), data)
    save_pack(tmp_path / "pack", recipe, data)
    with pytest.raises(TrainingError, match="teachers read libraries"):
        load_pack(tmp_path / "pack", replace(recipe, teach=replace(recipe.teach, teachers=("a",))))
