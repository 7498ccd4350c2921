import json

import cv2
import numpy as np
import pytest
from tests.cli.invoke import invoke

from wordreel.lab.training.appearance.start import WEIGHTS
from wordreel.runtime.store import WeightStore

needs_weights = pytest.mark.skipif(
    not (WeightStore().has(WEIGHTS) and WeightStore().has("minilm")),
    reason=f"weights are not here: run `wordreel weights fetch {WEIGHTS} minilm`",
)


def folder_of_pictures(folder, count):
    """A captioned folder of pictures, and one file that is none."""
    rng = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    captions = {}
    for number in range(count):
        picture = cv2.resize(rng.integers(0, 256, (5, 8, 3), np.uint8), (96, 64))
        cv2.imwrite(str(folder / "images" / f"{number}.png"), picture)
        captions[str(number)] = [f"colour number {number}", f"a picture, the {number}th"]
    (folder / "images" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    captions["broken"] = ["cannot be read"]
    (folder / "captions.json").write_text(json.dumps(captions))


@needs_weights
def test_pack_train_and_export(tmp_path):
    folder_of_pictures(tmp_path / "data", 10)
    small = ("--set", "model.size=64", "--set", "run.drop_last=false")
    packed = invoke(
        "train", "appearance", "--captions", tmp_path / "data", "--pack", tmp_path / "p", *small,
        "--set", "pictures.hold_out=0.4", "--device", "cpu",
    )  # fmt: skip
    assert packed.exit_code == 0, packed.output
    assert "skipped 1 without a file" in packed.output
    trained = invoke(
        "train", "appearance", "--packed", tmp_path / "p", "--out", tmp_path / "run", *small,
        "--epochs", 1, "--batch", 4, "--device", "cpu", "--json",
    )  # fmt: skip
    assert trained.exit_code == 0, trained.output
    again = invoke("train", "appearance", "--packed", tmp_path / "p", "--out", tmp_path / "run", *small)
    assert again.exit_code == 1
    assert "already holds a run" in str(again.exception)
    exported = invoke("export", tmp_path / "run", "--packed", tmp_path / "p", "--json")
    assert exported.exit_code == 0, exported.output
    facts = json.loads(exported.stdout)
    assert facts["file"].endswith("run/appearance.safetensors")
    assert 6e6 < facts["bytes"] < 7e6
    assert facts["least_cosine"] > 0.9
    assert list(facts["recall"]) == ["data all"]
    shown = invoke("export", tmp_path / "run", "--packed", tmp_path / "p", "--overwrite")
    assert "8 bits: cosine of features" in shown.output
    assert "data all, text to video R@1 R@5 R@10:" in shown.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say what to train on"),
        (("--captions", "c", "--videos", "v", "--library", "l"), "give one"),
        (("--packed", "p", "--share", "2"), "--share cannot be used with --packed"),
        (("--captions", "c", "--teacher", "t"), "--teacher cannot be used"),
        (("--data", "d"), "--data cannot be used"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, options, said):
    refused = invoke("train", "appearance", "--out", tmp_path / "run", *options)
    assert refused.exit_code == 2
    assert said in " ".join(refused.output.replace("│", " ").split())
