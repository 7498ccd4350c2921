from dataclasses import asdict

import numpy as np
import pytest
from tests.backbones import tiny
from tests.lab.models.clip import published_clip4clip as published
from tests.lab.models.clip import slow_clip as slow

from wordreel.backbones.config import FrameHeadConfig
from wordreel.backbones.frame_head import HEAD, FrameHead
from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.read_clip4clip import backbone_of, is_clip4clip
from wordreel.errors import WeightsError

HEADERS = {"meanP": "mean", "seqLSTM": "lstm", "seqTransf": "transformer"}


@pytest.mark.parametrize("header", HEADERS)
def test_towers_and_head_give_the_published_video_vector(header, tmp_path):
    arrays = {f"module.{key}": value.astype(np.float16) for key, value in published.state(header).items()}
    assert is_clip4clip(arrays)
    config, state = backbone_of("tuned", arrays, frames=5)
    assert config.name == "tuned"
    layers = published.LAYERS if header == "seqTransf" else FrameHeadConfig.layers
    assert config.head == FrameHeadConfig(HEADERS[header], 5, layers, published.TEXT_HEADS)
    image, text = tiny.networks(config, state, tmp_path)
    pictures = np.random.default_rng(0).normal(size=(3, 3, 8, 8)).astype(np.float32)
    ids = np.zeros((1, published.LENGTH), np.int64)
    ids[0, :4] = 57, 3, 8, 59
    wide = {key.removeprefix("module."): value.astype(float) for key, value in arrays.items()}
    clip = {key[5:]: value for key, value in wide.items() if key.startswith("clip.")}
    frames = [
        slow.frame_tokens(
            slow.patches_2d(picture, clip["visual.conv1.weight"]),
            clip,
            published.DEPTH,
            published.VISION_HEADS,
        )[0]
        for picture in pictures.astype(float)
    ]
    rows = image(frames=pictures)["features"]
    np.testing.assert_allclose(rows, frames, atol=1e-4)
    caption = slow.text_tokens([57, 3, 8, 59], clip, published.DEPTH, published.TEXT_HEADS)[-1]
    np.testing.assert_allclose(text(ids=ids)["features"][0], caption, atol=1e-4)
    weights = {key.removeprefix(HEAD): state[key] for key in state if key.startswith(HEAD)}
    video = {
        "meanP": lambda: slow.mean_head(frames),
        "seqLSTM": lambda: slow.lstm_head(frames, wide),
        "seqTransf": lambda: slow.transformer_head(frames, wide, published.LAYERS, published.TEXT_HEADS),
    }[header]()
    np.testing.assert_allclose(FrameHead(config.head, config.dim, weights)([rows])[0], video, atol=1e-4)


def test_a_training_here_brings_its_configuration():
    from wordreel.lab.models.clip.config import Clip4ClipConfig

    inferred, _ = backbone_of("x", published.state("seqTransf"))
    facts = asdict(Clip4ClipConfig(inferred, "transformer", max_frames=7, max_words=9))
    config, _ = backbone_of("run", published.state("seqTransf"), facts)
    assert (config.name, config.head.frames) == ("run", 7)
    assert (config.text, config.vision) == (inferred.text, inferred.vision)
    with pytest.raises(WeightsError, match="the description of run cannot be read"):
        backbone_of("run", published.state("seqTransf"), {**facts, "backbone": {"name": "x"}})


def test_what_search_cannot_run_is_refused_with_the_reason():
    with pytest.raises(WeightsError, match="tight head, which reads every query together with every video"):
        backbone_of("x", published.state("tightTransf"))
    with pytest.raises(WeightsError, match="3-D patches, which read neighbouring frames together"):
        backbone_of("x", published.state("meanP", "3d"))
    selection = {"visual_token_selector.score_predictor.out_conv.2.weight": np.zeros((1, 64), "f4")}
    with pytest.raises(WeightsError, match="is a TS2-Net, which weighs the frames of a video by the query"):
        backbone_of("x", {**published.state("seqTransf"), **selection})
    state = published.state("seqLSTM")
    state.pop("lstm_visual.bias_ih_l0")
    with pytest.raises(WeightsError, match=r"it has no lstm_visual\.bias_ih_l0"):
        backbone_of("x", state)
    with pytest.raises(WeightsError, match="it has weight_center, which that network does not have"):
        backbone_of("x", {**published.state("meanP"), "weight_center": np.zeros(3, "f4")})


def test_a_published_file_is_a_backbone(tmp_path):
    torch = pytest.importorskip("torch")
    state = published.state("seqLSTM")
    folder = tmp_path / "ckpt_msvd"
    folder.mkdir()
    torch.save({key: torch.from_numpy(value) for key, value in state.items()}, folder / "pytorch_model.bin.2")
    config, read = read_backbone(folder / "pytorch_model.bin.2")
    assert (config.name, config.head.kind) == ("ckpt_msvd", "lstm")
    assert config.logit_scale == pytest.approx(np.exp(state["clip.logit_scale"]))
    assert np.array_equal(read["visual_projection.weight"], state["clip.visual.proj"].T)


def test_a_clip2video_is_a_backbone_whose_vectors_are_twice_as_long(tmp_path):
    pytest.importorskip("torch")
    from tests.lab.models.clip.tiny_config import tiny_clip

    from wordreel.lab.models import checkpoint
    from wordreel.lab.models.clip.build import build_video_text
    from wordreel.lab.models.clip.config import Clip2VideoConfig

    trained = Clip2VideoConfig(tiny_clip(), layers=1, centres=3, global_weight=0.4, max_words=8, max_frames=4)
    model = build_video_text(trained)
    checkpoint.save(tmp_path / "run", model, "toy")
    config, state = read_backbone(tmp_path / "run")
    assert config.head == FrameHeadConfig("clip2video", 4, 1, 2, 0.4, 3, 2.5)
    assert config.vector_dim == 2 * config.dim
    head = {key.removeprefix(HEAD): state[key] for key in state if key.startswith(HEAD)}
    assert head.keys() == {key for key in model.state_dict() if not key.startswith("clip.")}
    frames = np.random.default_rng(0).normal(size=(3, config.dim)).astype(np.float32)
    assert FrameHead(config.head, config.dim, head)([frames]).shape == (1, config.vector_dim)


def test_a_training_is_a_backbone(tmp_path):
    pytest.importorskip("torch")
    from tests.lab.models.clip.tiny_config import tiny_clip

    from wordreel.lab.models import checkpoint
    from wordreel.lab.models.clip.build import build_video_text
    from wordreel.lab.models.clip.config import Clip4ClipConfig

    model = build_video_text(Clip4ClipConfig(tiny_clip(), "transformer", layers=1, max_words=8, max_frames=4))
    checkpoint.save(tmp_path / "run" / "best", model, "toy")
    config, state = read_backbone(tmp_path / "run")
    assert (config.name, config.head) == ("run", FrameHeadConfig("transformer", 4, 1, 2))
    first = f"{HEAD}transformerClip.resblocks.0.ln_1.weight"
    assert np.array_equal(state[first], model.state_dict()[first.removeprefix(HEAD)])
    assert config.vision == tiny_clip().vision
