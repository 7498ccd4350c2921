"""Published CLIP4Clip checkpoints into modules and back, key by key."""

from collections import OrderedDict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip import published_clip4clip as published  # noqa: E402
from tests.lab.models.clip import slow_clip as slow  # noqa: E402
from tests.lab.models.clip.tiny import captions, frames, real_frames  # noqa: E402

from wordreel.errors import UnsafePickle, WeightsError  # noqa: E402
from wordreel.lab.checkpoints.video_text import infer_video_text, load_published, save_published  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig  # noqa: E402

HEADERS = {"meanP": "mean", "seqLSTM": "lstm", "seqTransf": "transformer", "tightTransf": "tight"}


def write(path, state, *, half=False, wrapped=False, old=False):
    """As the published trainer saves: a state dict, of `DataParallel` with its prefix."""
    tensors = OrderedDict()
    for key, value in state.items():
        tensor = torch.from_numpy(value)
        tensors["module." * wrapped + key] = tensor.half() if half else tensor
    torch.save(tensors, path, _use_new_zipfile_serialization=not old)
    return path


@pytest.mark.parametrize("patch", ["2d", "3d"])
@pytest.mark.parametrize("header", HEADERS)
def test_every_key_is_taken_and_written_back(tmp_path, header, patch):
    state = published.state(header, patch)
    module = load_published(write(tmp_path / "pytorch_model.bin.3", state))
    assert module.config.head == HEADERS[header]
    assert (module.config.patch, module.config.mode) == (patch, "released")
    loaded = module.state_dict()
    assert loaded.keys() == state.keys()
    for key, value in state.items():
        assert np.array_equal(loaded[key].numpy(), value), key
    save_published(tmp_path / "again.bin", module)
    again = torch.load(tmp_path / "again.bin", weights_only=True)
    assert isinstance(again, OrderedDict)
    assert again.keys() == state.keys()
    assert all(np.array_equal(again[key].numpy(), state[key]) for key in state)


@pytest.mark.parametrize("header", HEADERS)
@torch.no_grad()
def test_a_published_checkpoint_gives_its_logits(tmp_path, header):
    state = published.state(header)
    module = load_published(write(tmp_path / "pytorch_model.bin.0", state))
    videos, texts = frames(lengths=(3,)), captions()
    wide = {key: value.astype(float) for key, value in state.items()}
    clip = {key[5:]: value for key, value in wide.items() if key.startswith("clip.")}
    weight = clip["visual.conv1.weight"]
    embeddings = [
        slow.frame_tokens(slow.patches_2d(one, weight), clip, published.DEPTH, published.VISION_HEADS)[0]
        for one in real_frames(videos)[0]
    ]
    heads, layers = published.TEXT_HEADS, published.LAYERS
    for row, length in enumerate((4, 7)):
        text = slow.text_tokens(texts.ids[row, :length].tolist(), clip, published.DEPTH, heads)[-1]
        if header == "tightTransf":
            expected = slow.tight_head(text, embeddings, wide, layers, heads)
        else:
            video = {
                "meanP": lambda: slow.mean_head(embeddings),
                "seqLSTM": lambda: slow.lstm_head(embeddings, wide),
                "seqTransf": lambda: slow.transformer_head(embeddings, wide, layers, heads),
            }[header]()
            expected = float(np.exp(wide["clip.logit_scale"]) * (slow.unit(text) @ video))
        assert float(module(videos, texts)[row, 0]) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("old", [False, True])
def test_half_precision_and_the_prefix_of_several_devices(tmp_path, old):
    state = published.state("seqTransf")
    path = write(tmp_path / "pytorch_model.bin.1", state, half=True, wrapped=True, old=old)
    loaded = load_published(path).state_dict()
    for key, value in state.items():
        assert loaded[key].dtype == torch.float32
        assert np.array_equal(loaded[key].numpy(), value.astype(np.float16).astype(np.float32)), key


def test_the_configuration_is_in_the_shapes():
    config = infer_video_text("x", published.state("seqTransf"), "paper", 15)
    assert isinstance(config, Clip4ClipConfig)
    backbone = config.backbone
    assert (backbone.vision.size, backbone.vision.patch, backbone.vision.heads) == (8, 4, 1)
    assert (backbone.text.width, backbone.text.heads, backbone.text.length) == (128, 2, 20)
    assert backbone.vision.activation == backbone.text.activation == "quick_gelu"
    assert (config.layers, config.max_frames, config.max_words) == (2, 15, 20)
    with pytest.raises(WeightsError, match="max_words is at most 20, the text tower's length, not 64"):
        infer_video_text("x", published.state("seqTransf"), max_words=64)
    with pytest.raises(WeightsError, match="frame_rate is above 0"):
        infer_video_text("x", published.state("seqTransf"), frame_rate=0)
    with pytest.raises(WeightsError, match="released-2021 is CLIP4Clip's"):
        infer_video_text("x", {**published.state("meanP"), "emb_center": np.zeros((5, 1))}, "released-2021")


def test_other_checkpoints_are_refused(tmp_path):
    state = published.state("seqLSTM")
    missing = {key: value for key, value in state.items() if key != "lstm_visual.bias_hh_l0"}
    with pytest.raises(WeightsError, match=r"it has no lstm_visual\.bias_hh_l0"):
        load_published(write(tmp_path / "a.bin", missing))
    with pytest.raises(WeightsError, match=r"lstm_visual\.bias_hh_l0 has the shape 3, not 512"):
        load_published(write(tmp_path / "b.bin", {**state, "lstm_visual.bias_hh_l0": np.zeros(3, "f4")}))
    with pytest.raises(WeightsError, match="it has extra, which that network does not have"):
        load_published(write(tmp_path / "c.bin", {**state, "extra": np.zeros(3, "f4")}))
    with pytest.raises(WeightsError, match=r"no weights under clip\.visual"):
        load_published(write(tmp_path / "d.bin", {"ce.moe_fc.weight": np.zeros(3, "f4")}))
    bare = {key[5:]: value for key, value in state.items() if key.startswith("clip.")}
    with pytest.raises(WeightsError, match="is CLIP itself") as refused:
        load_published(write(tmp_path / "ViT-B-32.pt", bare))
    assert refused.value.next_step.command == "use ViT-B-32.pt"
    torch.save({"clip.visual.proj": print}, tmp_path / "e.bin")
    with pytest.raises(UnsafePickle):
        load_published(tmp_path / "e.bin")
