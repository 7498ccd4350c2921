"""`wordreel train videos`: from a folder of videos and captions to a model that a library uses."""

import json

import pytest
from tests.lab.training.frames.clips import COLOURS, tiny_backbone, write_videos
from typer.testing import CliRunner

from wordreel.cli.app import app

pytest.importorskip("torch")

SMALL = {
    "model.max_frames": 2,
    "model.max_words": 8,
    "frames.workers": 1,
    "run.precision": "float32",
}


@pytest.fixture
def given(tmp_path):
    """The words of a short training on six videos."""
    write_videos(tmp_path)
    words = ["train", "videos", "clip4clip-mean-msvd", "--videos", str(tmp_path / "videos")]
    words += ["--captions", str(tmp_path / "captions.json"), "--out", str(tmp_path / "run")]
    words += ["--backbone", str(tiny_backbone(tmp_path / "clip")), "--device", "cpu"]
    words += ["--epochs", "1", "--batch", "3"]
    return [*words, *(word for key, value in SMALL.items() for word in ("--set", f"{key}={value}"))]


def test_videos_and_captions_become_a_model(given, tmp_path):
    (tmp_path / "val.txt").write_text("red\nblue\n")
    done = CliRunner().invoke(app, [*given, "--val-ids", str(tmp_path / "val.txt"), "--json"])
    assert done.exit_code == 0, done.output
    assert f"{len(COLOURS)} videos" in done.stderr
    assert "validation: 2 videos, 4 captions" in done.stderr
    (row,) = json.loads(done.stdout)
    assert row["figures"]["t2v"]["queries"] == 4
    facts = json.loads((tmp_path / "run" / "best" / "model.json").read_text())
    assert facts["training"]["recipe"]["name"] == "clip4clip-mean-msvd"
    assert (tmp_path / "run" / "best" / "tokenizer.json").is_file()


def test_options_of_other_models_and_missing_data_are_refused(given, tmp_path):
    library = ["--library", str(tmp_path)]
    for wrong in (
        ["--kind", "ce"],
        ["--teacher", "x"],
        ["--pack", "x"],
        ["--annotations", str(tmp_path)],
        library,
    ):
        assert CliRunner().invoke(app, [*given, *wrong]).exit_code == 2
    where = given.index("--captions")
    done = CliRunner().invoke(app, given[:where] + given[where + 2 :])
    assert done.exit_code == 2
    assert not (tmp_path / "run").exists()
