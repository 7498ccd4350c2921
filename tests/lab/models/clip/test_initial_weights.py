from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny import captions, frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import tiny_clip  # noqa: E402
from tests.tiny_backbone import write_clip  # noqa: E402

from wordreel.backbones.layouts import to_openai  # noqa: E402
from wordreel.backbones.read_backbone import read_backbone  # noqa: E402
from wordreel.errors import WeightsError  # noqa: E402
from wordreel.lab.models.clip.build import build_video_text  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig, small_clip  # noqa: E402
from wordreel.lab.models.clip.initial_weights import init_from_backbone  # noqa: E402


def test_from_a_huggingface_folder(tmp_path):
    folder = write_clip(tmp_path / "clip")
    config, state = read_backbone(folder)
    model = build_video_text(Clip4ClipConfig(config, "lstm"))
    init_from_backbone(model, folder)
    published, own = to_openai(state), model.clip.state_dict()
    assert published.keys() >= own.keys()
    for key in own:
        assert np.array_equal(own[key].numpy(), published[key]), key


@torch.no_grad()
def test_from_openais_layout(tmp_path):
    clip = small_clip("small", size=8, patch=4, width=64, depth=2, dim=64, vocabulary=60, length=20)
    source = build_video_text(Clip4ClipConfig(clip, max_words=8)).eval()
    shake(source)
    torch.save(source.clip.state_dict(), tmp_path / "small.pt")
    config = Clip4ClipConfig(clip, "transformer", layers=1, max_frames=6, max_words=8)
    model = build_video_text(config).eval()
    init_from_backbone(model, tmp_path / "small.pt")
    assert torch.equal(model.clip.frames(frames().pixels), source.clip.frames(frames().pixels))
    assert torch.equal(model.clip.texts(captions().ids), source.clip.texts(captions().ids))
    first = "resblocks.0.mlp.c_fc.weight"
    assert torch.equal(
        model.transformerClip.get_parameter(first), source.clip.transformer.get_parameter(first)
    )


def test_another_size_is_refused(tmp_path):
    folder = write_clip(tmp_path / "clip")
    config, _ = read_backbone(folder)
    other = replace(config, text=replace(config.text, activation="gelu"))
    with pytest.raises(WeightsError, match=r"its text\.activation is 'quick_gelu', not 'gelu'"):
        init_from_backbone(build_video_text(Clip4ClipConfig(other)), folder)
    with pytest.raises(WeightsError, match=r"is not a tiny: its vision\.size"):
        init_from_backbone(build_video_text(Clip4ClipConfig(tiny_clip(), max_words=8)), folder)
