"""`wordreel evaluate pictures`."""

import numpy as np
import pytest
from tests.cli.invoke import shell, shell_json

from wordreel.errors import EvaluationError


def bird_folder(folder, classes=(99, 100, 101, 102, 103), each=4):
    """CUB's lists for a few pictures; classes above 100 are the test split."""
    names = [f"{label:03}.Bird/{label}_{n}.jpg" for label in classes for n in range(each)]
    labels = np.repeat(classes, each)
    (folder / "images.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(names, 1)))
    (folder / "image_class_labels.txt").write_text(
        "".join(f"{n} {label}\n" for n, label in enumerate(labels, 1))
    )
    return labels[labels > 100]


def test_pictures_that_are_searched_by_class(tmp_path):
    labels = bird_folder(tmp_path)
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(labels), 6)) + 0.8 * np.eye(6)[labels - 101]
    np.save(tmp_path / "birds.npy", vectors.astype(np.float32))
    facts = shell_json("evaluate", "pictures", "cub", tmp_path / "birds.npy", "--data", tmp_path)
    unit = vectors.astype(np.float32)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    scores = unit @ unit.T
    np.fill_diagonal(scores, -np.inf)
    right = labels[scores.argmax(axis=1)] == labels
    (plain,) = facts["runs"]
    assert plain["recall"]["1"] == pytest.approx(100 * right.mean())
    assert list(plain["recall"]) == ["1", "2", "4", "8"]
    assert (plain["queries"], plain["items"], plain["postprocessing"]) == (12, 12, "none")
    result = shell("evaluate", "pictures", "cub", tmp_path / "birds.npy", "--data", tmp_path)
    assert "12 items instead of 5,924" in result.stderr
    assert "mAP@R" in result.stdout
    np.save(tmp_path / "few.npy", vectors[:5])
    with pytest.raises(EvaluationError, match="5 embeddings, but split 'test' of cub has 12 pictures"):
        shell("evaluate", "pictures", "cub", tmp_path / "few.npy", "--data", tmp_path)
    shell("evaluate", "pictures", "cub", "--data", tmp_path, code=2)


def product_folder(folder, products, each=3):
    lines = [
        f"{n} {label} 1 chair_final/{label}_{n}.JPG"
        for n, label in enumerate(np.repeat(np.arange(1, products + 1), each), 1)
    ]
    (folder / "Ebay_test.txt").write_text("image_id class_id super_class_id path\n" + "\n".join(lines) + "\n")
    return np.repeat(np.arange(products), each)


@pytest.mark.parametrize("protocol", ["cub", "sop"])
def test_pictures_normalised_by_a_bank_of_training_pictures(tmp_path, protocol):
    labels = bird_folder(tmp_path) if protocol == "cub" else product_folder(tmp_path, 8)
    labels = labels - labels.min()
    rng = np.random.default_rng(1)
    hub = rng.normal(size=6)
    vectors = rng.normal(size=(len(labels), 6)) + 1.2 * np.eye(10)[labels][:, :6] + hub
    train = rng.normal(size=(40, 6)) + hub
    for name, array in (("test", vectors), ("train", train)):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    words = ["evaluate", "pictures", protocol, tmp_path / "test.npy", "--data", tmp_path]
    words += ["--bank", tmp_path / "train.npy", "--method", "dis", "--method", "test-is", "--method", "dsl"]
    runs = shell_json(*words)["runs"]
    names = [run["postprocessing"].partition("(")[0] for run in runs]
    assert names == ["none", "querybank", "transductive", "transductive"]
    unit, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (vectors, train))
    sims, bank = unit @ unit.T, other @ unit.T
    np.fill_diagonal(sims, -1.25)
    active = set(bank.argmax(axis=1))
    inverted = np.exp(20 * sims) / np.exp(20 * bank).sum(axis=0)
    gate = np.array([row.argmax() in active for row in sims])[:, None]
    column = np.exp(100 * sims) / np.exp(100 * sims).sum(axis=0)
    for run, scores in zip(runs, (sims, np.where(gate, inverted, sims), column, sims * column), strict=True):
        scores = scores.copy()
        np.fill_diagonal(scores, -np.inf)
        right = labels[scores.argmax(axis=1)] == labels
        assert run["recall"]["1"] == pytest.approx(100 * right.mean()), run["postprocessing"]
    assert "transductive(uses all test queries, method=dsl" in shell(*words).stdout
    np.save(tmp_path / "train.npy", train[:, :5])
    with pytest.raises(EvaluationError, match="5 dimensions, the items' 6"):
        shell(*words)
    shell(*words[:6], "--method", "dis", code=2)
