"""The towers of a published CLIP, from every layout that training starts from."""

import json
import sys
import types
import zipfile
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.numpy import load_file, save_file  # noqa: E402
from tests.lab.models.clip.tiny import captions, frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import tiny_clip  # noqa: E402
from tests.tiny_backbone import DEPTH, HEADS, clip_state, write_clip, write_json  # noqa: E402

from wordreel.errors import WeightsError  # noqa: E402
from wordreel.lab.checkpoints.clip import from_transformers, infer_clip, init_from_clip, read_clip  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import (  # noqa: E402
    VIT_B_32,
    Clip4ClipConfig,
    ClipConfig,
    small_clip,
)

SMALL = small_clip("small", size=8, patch=4, width=64, depth=2, dim=64, vocabulary=60, length=20)


def test_from_a_folder_for_transformers(tmp_path):
    config, state = read_clip(write_clip(tmp_path / "clip"))
    assert (config.vision.heads, config.vision.depth, config.text.heads) == (HEADS, DEPTH, HEADS)
    assert (config.transform.size, config.vision.activation, config.text.epsilon) == (32, "quick_gelu", 1e-5)
    model = build(Clip4ClipConfig(config, "lstm"))
    init_from_clip(model, tmp_path / "clip")
    own, theirs = model.clip.state_dict(), clip_state()
    assert state.keys() == own.keys()
    at = "vision_model.encoder.layers.1"
    block = "visual.transformer.resblocks.1"
    parts = [theirs[f"{at}.self_attn.{part}_proj.weight"] for part in "qkv"]
    np.testing.assert_array_equal(own[f"{block}.attn.in_proj_weight"].numpy(), np.concatenate(parts))
    np.testing.assert_array_equal(own["visual.proj"].numpy(), theirs["visual_projection.weight"].T)
    np.testing.assert_array_equal(own["text_projection"].numpy(), theirs["text_projection.weight"].T)
    np.testing.assert_array_equal(own[f"{block}.ln_2.bias"].numpy(), theirs[f"{at}.layer_norm2.bias"])
    np.testing.assert_array_equal(
        own["ln_final.weight"].numpy(), theirs["text_model.final_layer_norm.weight"]
    )


@torch.no_grad()
def test_from_openais_names(tmp_path):
    source = build(Clip4ClipConfig(SMALL, max_words=8)).eval()
    shake(source)
    torch.save(source.clip.state_dict(), tmp_path / "small.pt")
    for path in (tmp_path, tmp_path / "small.pt"):
        assert replace(read_clip(path)[0], name="small") == SMALL
    model = build(Clip4ClipConfig(SMALL, "transformer", layers=1, max_frames=6, max_words=8)).eval()
    init_from_clip(model, tmp_path / "small.pt")
    assert torch.equal(model.clip.frames(frames().pixels), source.clip.frames(frames().pixels))
    assert torch.equal(model.clip.texts(captions().ids), source.clip.texts(captions().ids))
    first = "resblocks.0.mlp.c_fc.weight"
    assert torch.equal(
        model.transformerClip.get_parameter(first), source.clip.transformer.get_parameter(first)
    )


def test_published_sizes_are_in_the_shapes():
    with torch.device("meta"):
        state = build(Clip4ClipConfig(VIT_B_32)).clip.state_dict()
    shapes = {key: np.broadcast_to(np.float32(0), tuple(value.shape)) for key, value in state.items()}
    assert infer_clip("clip-vit-b-32", shapes) == VIT_B_32


def test_openais_archive_is_read_by_open_clip(tmp_path, monkeypatch):
    path = tmp_path / "ViT.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ViT/constants.pkl", b"")
        archive.writestr("ViT/data.pkl", b"")
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(WeightsError, match=r"archive of TorchScript.*pip install open-clip-torch"):
        read_clip(path)
    clip, seen = build(Clip4ClipConfig(SMALL, max_words=8)).clip, []

    def load_openai_model(name, precision, device):
        seen.append((name, precision, device))
        return clip

    monkeypatch.setitem(sys.modules, "open_clip", types.SimpleNamespace(load_openai_model=load_openai_model))
    assert read_clip(path)[1].keys() == clip.state_dict().keys()
    assert seen == [(str(path), "fp32", "cpu")]


def test_another_size_is_refused(tmp_path):
    folder = write_clip(tmp_path / "clip")
    config, _ = read_clip(folder)
    other = replace(config, text=replace(config.text, activation="gelu"))
    with pytest.raises(WeightsError, match=r"its text\.activation is 'quick_gelu', not 'gelu'"):
        init_from_clip(build(Clip4ClipConfig(other)), folder)
    with pytest.raises(WeightsError, match=r"is not a tiny: its vision\.size"):
        init_from_clip(build(Clip4ClipConfig(tiny_clip(), max_words=8)), folder)


def test_what_is_no_clip_is_refused(tmp_path):
    with pytest.raises(WeightsError, match="there is no file or folder"):
        read_clip(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match=r"neither a config.json with model.safetensors"):
        read_clip(tmp_path)
    folder = write_clip(tmp_path / "clip")
    state = load_file(folder / "model.safetensors")
    save_file(
        {key: value for key, value in state.items() if "k_proj" not in key}, folder / "model.safetensors"
    )
    with pytest.raises(WeightsError, match=r"clip lacks the weights '.*k_proj"):
        read_clip(folder)
    values = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**values, "model_type": "siglip"})
    with pytest.raises(WeightsError, match="is a 'siglip'; models that read frames need a CLIP"):
        read_clip(folder)
    openai = from_transformers(clip_state())
    for key, value, said in (
        ("visual.conv1.weight", np.zeros(3), r"it has no visual\.conv1\.weight of the usual shape"),
        ("visual.positional_embedding", np.zeros((7, 32)), "7 tokens, which do not form a square"),
    ):
        with pytest.raises(WeightsError, match=said):
            infer_clip("x", {**openai, key: value})


def test_a_configuration_of_an_older_version_is_read():
    older = {
        "name": "old", "family": "clip", "dim": 512, "logit_scale": 100.0, "head": None,
        "vision": {"kind": "vit", "patch": 16, "class_token": True}, "text": {"end_token": -1, "width": 512},
        "transform": {"size": 224, "mean": [0.5, 0.5, 0.5], "std": [1, 1, 1], "resize": "crop"},
        "tokenizer": {"kind": "clip"},
    }  # fmt: skip
    config = ClipConfig.from_json(older)
    assert (config.vision.patch, config.transform.mean, config.text.width) == (16, (0.5, 0.5, 0.5), 512)
