"""Sizes of the video-text models: stated, by formula, and of the modules."""

from dataclasses import asdict, replace

import pytest
from tests.lab.models.clip.tiny_config import tiny_clip

from wordreel.lab.models.clip.config import VIT_B_16, VIT_B_32, Clip4ClipConfig, from_json
from wordreel.lab.models.clip.parameter_counts import image_tower, text_tower, video_text_parameters
from wordreel.lab.models.clip.registry import VIDEO_TEXT_MODELS

SIZES = {
    "clip4clip-mean": 151_277_313,
    "clip4clip-lstm": 153_417_985,
    "clip4clip-transformer": 163_926_273,
    "clip4clip-tight": 164_190_466,
    "clip2video-msrvtt": 170_238_209,
    "clip2video-vatex": 170_240_257,
    "ts2net": 164_189_697,
    "ts2net-long": 164_281_345,
}

OTHER = {"clip4clip": {"patch": "3d"}, "clip2video": {"difference": "mlp"}, "ts2net": {"patches": 1}}


def test_published_sizes():
    sizes = {name: sum(video_text_parameters(VIDEO_TEXT_MODELS[name].make()).values()) for name in SIZES}
    assert sizes == SIZES
    assert (image_tower(VIT_B_32), text_tower(VIT_B_32)) == (87_849_216, 63_428_096)
    assert image_tower(VIT_B_16) == 86_192_640
    assert video_text_parameters(Clip4ClipConfig(patch="3d"))["3-D patch"] == 3 * 3 * 32 * 32 * 768


@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("name", VIDEO_TEXT_MODELS)
@pytest.mark.parametrize("backbone", [VIT_B_32, tiny_clip(dim=12)], ids=["b32", "tiny"])
def test_modules_have_the_sizes_of_the_formulas(name, other, backbone):
    torch = pytest.importorskip("torch")
    from wordreel.lab.models.clip.build import build_video_text

    config = replace(VIDEO_TEXT_MODELS[name].make(), backbone=backbone, max_words=20)
    if other:
        config = replace(config, **OTHER[config.kind])
    with torch.device("meta"):
        module = build_video_text(config)
    assert sum(p.numel() for p in module.parameters()) == sum(video_text_parameters(config).values())
    assert from_json(asdict(config)) == config
