"""What a video-text model starts from."""

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny import shake  # noqa: E402
from tests.tiny_backbone import write_clip  # noqa: E402

from wordreel.errors import TrainingError, WeightsError  # noqa: E402
from wordreel.lab.checkpoints.clip import read_clip  # noqa: E402
from wordreel.lab.checkpoints.video_text import save_published  # noqa: E402
from wordreel.lab.models import checkpoint  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig, small_clip  # noqa: E402
from wordreel.lab.training.init_weights import init_video_text  # noqa: E402
from wordreel.lab.training.settings import StartSettings  # noqa: E402

CLIP = small_clip("small", size=8, patch=4, width=64, depth=2, dim=64, vocabulary=60, length=20)
CONFIG = Clip4ClipConfig(CLIP, "transformer", layers=1, max_frames=6, max_words=8)


def test_a_backbone_fills_towers_and_head(tmp_path):
    folder = write_clip(tmp_path / "clip")
    model = build(Clip4ClipConfig(read_clip(folder)[0], "lstm"))
    before = model.clip.visual.proj.detach().clone()
    init_video_text(model, StartSettings(backbone=str(folder)))
    assert not torch.equal(model.clip.visual.proj, before)
    with pytest.raises(WeightsError, match=r"is not a small: its vision\.size"):
        init_video_text(build(CONFIG), StartSettings(backbone=str(folder)))
    with pytest.raises(TrainingError, match="none is named"):
        init_video_text(model, StartSettings())


@pytest.mark.parametrize("published", [False, True])
def test_fine_tuning_takes_the_head_too(tmp_path, published):
    other = build(CONFIG)
    shake(other)
    if published:
        save_published(tmp_path / "model", other)
    else:
        checkpoint.save(tmp_path / "model" / "best", other, "toy")
    model = build(CONFIG)
    init_video_text(model, StartSettings(model=str(tmp_path / "model")))
    ours, theirs = model.state_dict(), other.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_frozen_layers_and_checkpointing():
    model = build(CONFIG)
    init_video_text(model, StartSettings(scratch=True, frozen_layers=1, checkpointing=True))
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert "clip.visual.conv1.weight" not in trained
    assert "clip.transformer.resblocks.0.ln_1.bias" not in trained
    assert {"clip.transformer.resblocks.1.ln_1.bias", "clip.logit_scale", "clip.ln_final.bias"} <= trained
    assert model.clip.transformer.gradient_checkpointing
