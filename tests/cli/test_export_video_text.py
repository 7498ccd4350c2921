"""`wordreel export` of a CLIP4Clip: the checkpoint that the published code loads."""

import json

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny_config import tiny_clip  # noqa: E402

from wordreel.cli.app import app  # noqa: E402
from wordreel.lab.models import checkpoint  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig  # noqa: E402


def test_a_run_is_exported_in_the_published_layout(tmp_path):
    model = build(Clip4ClipConfig(tiny_clip(), "lstm", max_words=8))
    checkpoint.save(tmp_path / "run" / "best", model, "toy")
    result = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--json"])
    assert result.exit_code == 0, result.output
    written = json.loads(result.stdout)
    assert written["file"] == str(tmp_path / "run" / "pytorch_model.bin")
    state = torch.load(written["file"], weights_only=True)
    assert state.keys() == model.state_dict().keys()
    assert torch.equal(state["lstm_visual.weight_hh_l0"], model.lstm_visual.weight_hh_l0)
    assert {"clip.visual.conv1.weight", "frame_position_embeddings.weight"} <= state.keys()
    again = CliRunner().invoke(app, ["export", str(tmp_path / "run")])
    assert again.exit_code == 2
    assert "exists" in again.output
