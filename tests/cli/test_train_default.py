"""`wordreel train default`, from a library and captions to a file that the model opens."""

import json

import pytest

from wordreel.errors import TrainingError

pytest.importorskip("torch")


def test_a_library_and_captions_become_a_model(shell, tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["a bakery opens", "bread"], "station.mp4": ["to Vienna"]}))
    words = ["train", "default", "--captions", str(captions), "--out", str(tmp_path / "run"), "--epochs", "1"]
    words += ["--batch", "2", "--device", "cpu", "--set", "teachers=1", "--set", "captions=2"]
    found = shell.json(*words, "--val-ids", str(_ids(tmp_path)))
    (written,) = found
    assert found[written]["0-library"]["queries"] == 1
    from pathlib import Path

    from wordreel.models.reel.model import Reel
    from wordreel.weights.store import WeightStore

    model = Reel(WeightStore(), Path(written))
    assert model.encode(["bread"])[0].vectors.shape == (6, 384)
    assert model.facts["settings"]["teachers"] == 1
    assert model.fingerprint != Reel(WeightStore()).fingerprint
    before = Path(written).read_bytes()
    shell(*words, code=2)  # --overwrite would
    assert Path(written).read_bytes() == before


def test_it_needs_captions(shell, tmp_path):
    shell("train", "default", "--out", str(tmp_path / "run"), code=2)


def test_values_are_checked(shell, tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["bread"]}))
    words = ["train", "default", "--captions", str(captions), "--out", str(tmp_path / "run"), "--set"]
    with pytest.raises(TrainingError, match="did you mean teachers"):
        shell(*words, "teacherz=2")
    shell(*words, "repeat=2", code=2)
    assert not (tmp_path / "run").exists()


def _ids(folder):
    place = folder / "val.txt"
    place.write_text("station.mp4\n")
    return place
