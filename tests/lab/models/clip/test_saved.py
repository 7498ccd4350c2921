"""Video-text models in checkpoint folders."""

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny import captions, frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import tiny_clip  # noqa: E402

from wordreel.errors import WeightsError  # noqa: E402
from wordreel.lab.models import checkpoint  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig  # noqa: E402


@pytest.mark.parametrize(
    "config",
    [
        Clip4ClipConfig(tiny_clip(), "transformer", "3d", layers=1, max_words=8),
        Clip2VideoConfig(tiny_clip(), layers=1, max_words=8, mode="released"),
        TS2NetConfig(tiny_clip(), layers=1, max_words=8, patches=2, noisy=False),
    ],
    ids=lambda config: config.kind,
)
@torch.no_grad()
def test_a_folder_gives_back_what_was_saved(tmp_path, config):
    model = build(config).eval()
    shake(model)
    checkpoint.save(tmp_path, model, "toy", {"data": "demo"})
    loaded, facts = checkpoint.load_video_text(tmp_path)
    assert loaded.config == config
    assert (facts["name"], facts["training"]) == ("toy", {"data": "demo"})
    assert torch.equal(loaded(frames(), captions()), model(frames(), captions()))
    with pytest.raises(WeightsError, match=config.kind):
        checkpoint.load_module(tmp_path)
