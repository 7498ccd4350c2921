"""`wordreel demo --model`, on a collection of one picture."""

import json

import pytest
from tests.tiny_backbone import write_onnx
from typer.testing import CliRunner

from wordreel.catalogue.store import LibraryStore
from wordreel.cli.app import app
from wordreel.demo.collection import DemoQuery
from wordreel.models import model_store
from wordreel.runtime.store import default_root


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """Runs the demo in a folder, without downloads."""
    import cv2
    import numpy as np

    def build(folder, samples):
        folder.mkdir(parents=True)
        cv2.imwrite(str(folder / "card.png"), np.full((64, 64, 3), (30, 30, 200), np.uint8))
        return (DemoQuery("a red card", "card.png"),)

    weights = tmp_path / "weights"  # with the experts' weights of the machine and no backbone
    weights.mkdir()
    for folder_of_one in default_root().iterdir():
        if folder_of_one.name != "backbones":
            (weights / folder_of_one.name).symlink_to(folder_of_one)
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(weights))
    monkeypatch.setattr("wordreel.cli.setup.weights.fetch_all", lambda quiet: None)
    monkeypatch.setattr("wordreel.demo.collection.download_samples", lambda folder: {})
    monkeypatch.setattr("wordreel.demo.collection.build_collection", build)

    def run(*words, exit_code=0):
        done = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "demo"), *words])
        assert done.exit_code == exit_code, done.output
        if exit_code:
            return done, None
        with LibraryStore.open(tmp_path / "demo" / "library") as store:
            return done, model_store.in_use(store)

    return run


def test_a_model_answers_instead_of_the_default_one(demo, tmp_path):
    done, used = demo("--model", str(write_onnx(tmp_path / "tiny", seed=69)), "--yes")  # red cards are "red"
    assert used != model_store.DEFAULT
    assert f"{used} answers; 1 clips were embedded." in done.stdout
    assert "1 of 1 queries rank the right file and moment first." in done.stdout


def test_a_model_that_cannot_be_had_leaves_the_default_one(demo, tmp_path):
    damaged = write_onnx(tmp_path / "tiny")
    (damaged / "onnx" / "text_model.onnx").write_bytes(b"cut short")
    done, used = demo("--model", str(damaged), "--json")
    assert used == model_store.DEFAULT
    assert "the default model answers instead" in done.stderr
    assert json.loads(done.stdout) == [{"query": "a red card", "file": "card.png", "correct": True}]


def test_a_model_that_is_none_is_refused_before_anything_is_built(demo, tmp_path):
    done, _ = demo("--model", "clip-vit-b-23", exit_code=1)
    assert "there is no model 'clip-vit-b-23'" in str(done.exception)
    assert not (tmp_path / "demo").exists()
