"""`wordreel convert` and back: a published TS2-Net with the parts that nothing uses."""

import json

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

from tests.lab.checkpoints.test_convert_papers import TS2NET, published, write  # noqa: E402

from wordreel.cli.app import app  # noqa: E402


def shell(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def test_a_file_that_is_not_there(tmp_path):
    assert (
        "does not exist" in shell("convert", tmp_path / "nowhere.bin", "--out", tmp_path / "m", code=2).output
    )


def test_a_published_checkpoint_there_and_back(tmp_path):
    path, folder, again = tmp_path / "pytorch_model.bin.4", tmp_path / "model", tmp_path / "again.bin"
    state = published(TS2NET)
    write(path, state)
    result = shell("convert", path, "--out", folder, "--frames", 12, "--words", 20)
    assert "ts2net, " in result.stdout
    assert "mode released, at most 12 frames (1 a second) and 20 words" in " ".join(result.stdout.split())
    assert "assumed a frame rate of 1 a second (--frame-rate)" in result.stderr
    assert "assumed 12 frames" not in result.stderr
    assert "left out text_token_selector and visual_prompt_encoder" in result.stderr
    assert "has a model" in shell("convert", path, "--out", folder, code=2).output
    done = json.loads(shell("convert", path, "--out", folder, "--overwrite", "--json").stdout)
    assert (done["kind"], done["max_words"], len(done["notes"])) == ("ts2net", 20, 6)
    shell("export", folder, "--out", again, "--unused", path)
    written = torch.load(again, weights_only=True)
    assert written.keys() == state.keys()
    assert all(torch.equal(written[key], state[key]) for key in state)
