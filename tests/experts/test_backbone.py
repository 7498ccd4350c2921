"""The image tower as an expert: one row a frame."""

import numpy as np
from tests.fake_backbone import ColourBackbone

from wordreel.backbones.config import BackboneConfig, HeadConfig
from wordreel.experts.network_experts import BackboneExpert, backbone_card
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.types import Absent


def expert(**settings):
    backbone = ColourBackbone(**settings)
    return BackboneExpert(backbone_card(backbone.config, "MIT"), backbone)


def test_the_card_follows_the_backbone():
    card = expert(name="clip-tiny").card
    assert (card.name, card.dim, card.need, card.licence) == ("clip-tiny", 3, FrameNeed(1.0, 4), "MIT")
    assert not card.default
    fast = backbone_card(BackboneConfig("c2v", head=HeadConfig(1024, rate=2.5)), "MIT")
    assert fast.need == FrameNeed(2.5, 224)


def test_one_row_for_each_frame():
    images = np.random.default_rng(0).integers(0, 255, (11, 4, 6, 3)).astype(np.uint8)
    track = expert().extract(Frames(images, np.arange(11.0), 1.0))
    for number, image in enumerate(images):
        np.testing.assert_allclose(track.values[number], image.mean(axis=(0, 1)), rtol=1e-5)
    assert track.times.tolist() == [[t, t + 1] for t in range(11)]


def test_no_frames_is_absent():
    nothing = Frames(np.zeros((0, 4, 4, 3), np.uint8), np.zeros(0), 1.0)
    assert isinstance(expert().extract(nothing), Absent)
    assert isinstance(expert().extract(Sound(np.zeros(10, np.float32), 100)), Absent)


def test_the_fingerprint_follows_the_backbone():
    assert expert().fingerprint != expert(fingerprint="b" * 16).fingerprint
