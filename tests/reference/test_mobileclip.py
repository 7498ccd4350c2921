"""MobileCLIP's towers against open_clip's and timm's modules on the same random weights."""

import json

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import save_file
from tests.backbones.apple_layout import apple_state

from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.towers import build_towers

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
open_clip = pytest.importorskip("open_clip")
pytest.importorskip("timm")

MODELS = ("MobileCLIP-S1", "MobileCLIP-S2", "MobileCLIP-B", "MobileCLIP2-S0", "MobileCLIP2-S3")


def shake(model):
    """Random statistics and gains: those of a new module are ones and zeros, which hides mistakes.

    Gains stay small, as in trained models: a deep tower of large ones amplifies rounding.
    """
    generator = torch.Generator().manual_seed(0)
    for key, value in model.state_dict().items():
        if key.endswith("running_var"):
            value.uniform_(0.5, 1.5, generator=generator)
        elif key.endswith("gamma"):
            value.uniform_(0.05, 0.2, generator=generator)
        elif key.endswith(("running_mean", ".bias")):
            value.normal_(0.0, 0.1, generator=generator)


def write(folder, name, model):
    config = open_clip.get_model_config(name)
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    state = {key: value.contiguous().numpy() for key, value in model.state_dict().items()}
    save_file(state, folder / "open_clip_model.safetensors")
    return folder


def features(model, **inputs):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


def inputs(config):
    rng = np.random.default_rng(0)
    frames = rng.uniform(0, 1, (2, 3, config.vision.size, config.vision.size)).astype(np.float32)
    ids = np.zeros((3, 77), np.int64)
    for row, words in enumerate((1, 8, 75)):
        ids[row, : words + 2] = [49406, *rng.integers(0, 49406, words), 49407]
    return frames, ids


def assert_close(ours, theirs):
    scale = np.abs(theirs).max()
    assert scale > 1e-3
    assert np.abs(ours - theirs).max() <= 1e-5 * max(1.0, scale)


@pytest.mark.parametrize("name", MODELS)
def test_towers_equal_open_clip(name, tmp_path):
    torch.manual_seed(0)
    model = open_clip.create_model(name).eval()
    shake(model)
    config, state = read_backbone(write(tmp_path / name, name, model))
    image, text = build_towers(config, state)
    frames, ids = inputs(config)
    with torch.no_grad():
        wanted = model.encode_image(torch.from_numpy(frames)), model.encode_text(torch.from_numpy(ids))
    assert_close(features(image, frames=frames), wanted[0].numpy())
    assert_close(features(text, ids=ids), wanted[1].numpy())
    assert config.family == "mobileclip"


@pytest.mark.parametrize("name", ["MobileCLIP-S1", "MobileCLIP-B"])
def test_apples_layout_is_read_as_open_clip_reads_it(name, tmp_path):
    from open_clip.convert import convert_state_dict

    model = open_clip.create_model(name).eval()
    shake(model)
    trunk = model.visual.trunk
    (trunk.head.fc if "S1" in name else trunk.head).bias.data.zero_()  # Apple's heads have none
    ours = {key: value.numpy() for key, value in model.state_dict().items()}
    apple = apple_state(ours)
    theirs = convert_state_dict(model, {key: torch.from_numpy(value) for key, value in apple.items()})
    assert {key for key in ours if "attn_mask" not in key} == set(theirs)
    assert all(np.array_equal(theirs[key].numpy(), ours[key]) for key in theirs)

    save_file(apple, tmp_path / "mobileclip.safetensors")
    read, state = read_backbone(tmp_path / "mobileclip.safetensors")
    wanted, other = read_backbone(write(tmp_path / name, name, model))
    assert set(other) - set(state) <= {"visual_projection.bias"}
    assert all(np.array_equal(state[key], other[key]) for key in state)
    assert (read.text, read.dim, read.transform) == (wanted.text, wanted.dim, wanted.transform)


def test_fused_checkpoints_are_read_as_they_are(tmp_path):
    from timm.utils import reparameterize_model

    name = "MobileCLIP2-S0"
    torch.manual_seed(0)
    model = open_clip.create_model(name).eval()
    shake(model)
    frames = torch.rand(1, 3, 256, 256)
    with torch.no_grad():
        wanted = model.encode_image(frames).numpy()
    config, state = read_backbone(write(tmp_path / name, name, reparameterize_model(model)))
    assert_close(features(build_towers(config, state)[0], frames=frames.numpy()), wanted)
