"""Fingerprints are part of libraries on disk: a change makes every stored track stale.

To change what an expert computes, raise its `version`, or the `converter_version` of its weights, and update
its value.
"""

import pytest

from wordreel.experts import registry
from wordreel.experts.base import fingerprint
from wordreel.runtime.store import WeightStore, identity
from wordreel.runtime.weight_table import PACKAGED
from wordreel.runtime.weight_table import PUBLISHED as CHECKPOINTS

NO_WEIGHTS = "00" * 32

CARDS = {
    "appearance": "b7072f83d3d1f4b0",
    "clip": "b09544cdd30637ac",
    "motion": "03d6bf9047ba466e",
    "sound": "c7f71230d2d4854a",
    "speech": "a247afafe543ada4",
    "ocr": "fd9131315039b517",
    "faces": "74122965399fa30e",
    "shots": "505b3983b03a608d",
    "senet154": "11182ab81e43921c",
    "resnext101_wsl": "7de9c7ab28820924",
    "i3d_paper": "e3b90840bf712e81",
    "s3d": "f173acaf5d9ec335",
    "r2p1d34_ig65m": "4fc0ae6a1a0df554",
    "densenet161_places365": "6fc7a0cd77b253a6",
    "vggish": "09ecaf059129493c",
    "vggface2_resnet50": "be4f2a71aea9df03",
}
PACKAGES = {
    "minilm": "0b69d46588a4094bd037abe1de98addab93612fee637c231b10eb2d481a89291",
    "whisper-base": "b1da2cda67785df8c33532f4957b3876574867f630788277d9f1612666ce3ab0",
    "yunet-sface": "5ed27e00068c6ea94c4becfd005c16a43629686991df381287d5dacb8ff8f746",
    "i3d-kinetics400": "5da6514277e1a02681e84bc74cb6f36e015ffe6f4cd852a2992d828838e26fc8",
    "soundnet8": "a2cf4caaf03b65a983575a4b2c73f11c3bd52510bdc96728645c29522c71fcb3",
    "clip-image-tower": "f14bf2c079ca4c0c21a86e0e15bdc5622bfe919b11d494349350a65342cd76b9",
    "clip-vocabulary": "2c2da7bc0be77219d9655a5efcba097d5c5a96b8edc63d0970e4ce76572196ef",
}
PUBLISHED = {
    "senet154": "32ef2e0943f93fd11f7f0aa55b1af11b5984ec8aa2dad4881d0d58830cde5446",
    "resnext101_wsl": "3679d4421930b21beb390b666c382e0322fc2c7f6b2d5d835bf71780edbd5434",
    "r2p1d34_ig65m": "236b708d1634b2309cdbe67124a13ea1056a1443e0ed7f2538b333bd19a198e9",
    "i3d_paper": "33df8771f17a54681f22b49126d9fa219bd92e0c71400bf3ebd983235c10abdc",
    "s3d": "68eb4117f06f317f9d69ad1f8e21c869668ee4cac025ce0139a2b28bdb5d451c",
    "densenet161_places365": "bf5132c476ea7fdc0880e94c9762241d018c9caafb6d099b80ab2ac26e94622b",
    "vggish": "a52cc7b8ac75ffd7a3ed9a2535cfec30923327906de6263c4477f2f6f7368532",
    "vggface2_resnet50": "3c27610009f57630aa9d873cbe63029b1dd011ff328a2ff13da2397f02a939b6",
}


def test_every_expert_and_every_weight_is_listed(tmp_path):
    assert list(registry.cards(WeightStore(tmp_path))) == list(CARDS)
    assert list(PACKAGED) == list(PACKAGES)
    assert list(CHECKPOINTS) == list(PUBLISHED)


@pytest.mark.parametrize("name", CARDS)
def test_cards_keep_their_fingerprints(name):
    assert fingerprint(registry.card(name), NO_WEIGHTS) == CARDS[name]


@pytest.mark.parametrize("name", PACKAGES)
def test_weights_from_packages_keep_their_identity(name):
    entry = PACKAGED[name]
    assert identity(entry, entry.members) == PACKAGES[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_weights_keep_their_identity(name):
    assert identity(CHECKPOINTS[name], {name: NO_WEIGHTS}) == PUBLISHED[name]
