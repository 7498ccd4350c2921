"""Reading models from folders as the hub holds them."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.backbones import tiny

from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.towers import check_state
from wordreel.errors import WeightsError

CLIP_JSON = {
    "model_type": "clip",
    "projection_dim": 10,
    "vision_config": {
        "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20,
        "image_size": 32, "patch_size": 8,
    },
    "text_config": {
        "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 14,
        "vocab_size": 50, "max_position_embeddings": 9, "eos_token_id": 2,
    },
}  # fmt: skip
SIGLIP_JSON = {
    "model_type": "siglip",
    "vision_config": {**CLIP_JSON["vision_config"], "image_size": 33},
    "text_config": {**CLIP_JSON["text_config"], "vocab_size": 40, "max_position_embeddings": 7},
}
CLIP_PICTURES = {"size": 32, "crop_size": {"height": 32, "width": 32}, "do_center_crop": True, "resample": 3}


def write(folder, config, state, pictures=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if pictures is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(pictures))
    if state is not None:
        save_file({key: np.asarray(value) for key, value in state.items()}, folder / "model.safetensors")
    return folder


def test_a_clip_folder_is_read_with_its_learnt_scale(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    config, read = read_backbone(write(tmp_path / "tiny-clip", CLIP_JSON, state, CLIP_PICTURES))
    tokenizer = replace(tiny.CLIP.tokenizer, length=9, cleaning="huggingface")
    assert replace(config, logit_scale=100.0) == replace(tiny.CLIP, tokenizer=tokenizer)
    assert config.logit_scale == pytest.approx(30.0)
    check_state(config, read)
    assert set(read) == set(state)
    assert all(np.array_equal(read[key], state[key]) for key in state)


def test_a_siglip_folder_is_read_with_its_learnt_bias(tmp_path):
    state = {**tiny.random_state(tiny.SIGLIP), "logit_bias": np.array([-12.5], np.float32)}
    config, read = read_backbone(write(tmp_path / "m", SIGLIP_JSON, state))
    assert (config.vision, config.text, config.dim) == (tiny.SIGLIP.vision, tiny.SIGLIP.text, 12)
    assert config.transform == tiny.SIGLIP.transform
    assert (config.logit_scale, config.logit_bias) == (1.0, -12.5)
    assert (config.family, config.tokenizer.kind, config.tokenizer.padding) == ("siglip", "siglip", 1)
    check_state(config, read)


def test_the_vocabulary_tells_siglip_2(tmp_path):
    text = {**SIGLIP_JSON["text_config"], "vocab_size": 256000}
    pictures = {
        "size": {"height": 33, "width": 33},
        "resample": 2,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    folder = write(
        tmp_path / "m", {**SIGLIP_JSON, "text_config": text}, {"logit_scale": np.zeros(1)}, pictures
    )
    config, _ = read_backbone(folder)
    assert (config.family, config.tokenizer.kind, config.tokenizer.padding) == ("siglip2", "siglip2", 0)
    assert (config.transform.resize, config.transform.interpolation) == ("squash", "bilinear")


def test_pictures_are_prepared_as_either_file_says(tmp_path):
    state = {"logit_scale": np.zeros(1, np.float32)}
    folder = write(tmp_path / "m", CLIP_JSON, state)
    inner = {**CLIP_PICTURES, "image_mean": [0.1, 0.2, 0.3], "resample": 2}
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": inner}))
    transform = read_backbone(folder)[0].transform
    assert (transform.mean, transform.interpolation) == ((0.1, 0.2, 0.3), "bilinear")
    write(folder, CLIP_JSON, state, {**CLIP_PICTURES, "image_mean": [0.4, 0.5, 0.6]})
    assert read_backbone(folder)[0].transform.mean == (0.4, 0.5, 0.6)


def test_parts_and_checkpoints_are_read_as_one(tmp_path):
    torch = pytest.importorskip("torch")
    state = tiny.random_state(tiny.CLIP)
    folder = write(tmp_path / "m", CLIP_JSON, None)
    torch.save({key: torch.tensor(value) for key, value in state.items()}, folder / "pytorch_model.bin")
    _, pickled = read_backbone(folder)
    keys = sorted(state)
    for number, part in enumerate((keys[::2], keys[1::2])):
        save_file({key: np.asarray(state[key]) for key in part}, folder / f"model-{number}.safetensors")
    table = {key: f"model-{number % 2}.safetensors" for number, key in enumerate(keys)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    _, parts = read_backbone(folder)
    for read in (pickled, parts):
        assert set(read) == set(state)
        assert all(np.array_equal(read[key], state[key]) for key in state)


def test_half_precision_weights_are_read_as_floats(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    state = tiny.random_state(tiny.CLIP)
    half = {
        key: value.astype(ml_dtypes.bfloat16 if "text" in key else np.float16) for key, value in state.items()
    }
    config, read = read_backbone(write(tmp_path / "m", CLIP_JSON, half))
    check_state(config, read)
    key = "text_projection.weight"
    np.testing.assert_allclose(read[key], state[key], rtol=1e-2)
    assert read[key].dtype == np.float32


def refusal(folder):
    with pytest.raises(WeightsError) as caught:
        read_backbone(folder)
    return str(caught.value)


def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path):
    state = {"logit_scale": np.zeros(1, np.float32)}
    assert "there is no file or folder" in refusal(tmp_path / "none")
    assert "has neither config.json nor open_clip_config.json" in refusal(tmp_path)
    assert "model.safetensors nor pytorch_model.bin" in refusal(write(tmp_path / "m", CLIP_JSON, None))
    assert "'bert', which is not" in refusal(write(tmp_path / "m", {"model_type": "bert"}, state))
    assert "NaFlex" in refusal(write(tmp_path / "m", {"model_type": "siglip2"}, state))
    wide = {**CLIP_JSON, "vision_config": {"hidden_size": 10**9}}
    assert "hidden_size is 1000000000, not a size" in refusal(write(tmp_path / "m", wide, state))
    odd = {**CLIP_JSON, "vision_config": {"hidden_size": 10, "num_attention_heads": 3}}
    assert "3 attention heads for a width of 10" in refusal(write(tmp_path / "m", odd, state))
    bent = {**CLIP_JSON, "text_config": {"hidden_act": "relu6"}}
    assert "the activation 'relu6'" in refusal(write(tmp_path / "m", bent, state))
    pictures = {"size": {"height": 32, "width": 48}}
    assert "only squares" in refusal(write(tmp_path / "m", CLIP_JSON, state, pictures))
    (tmp_path / "m" / "config.json").write_text("[1")
    assert "config.json cannot be read" in refusal(tmp_path / "m")


def test_a_truncated_file_is_refused_before_anything_is_built(tmp_path):
    folder = write(tmp_path / "m", CLIP_JSON, tiny.random_state(tiny.CLIP))
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])
    assert "not a complete safetensors file" in refusal(folder)


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    folder = write(tmp_path / "m", CLIP_JSON, None)
    os.mkfifo(folder / "model.safetensors")
    assert "has neither model.safetensors" in refusal(folder)
    assert "there is no file or folder" in refusal(folder / "model.safetensors")


def test_an_index_cannot_name_files_elsewhere(tmp_path):
    folder = write(tmp_path / "m", CLIP_JSON, None)
    for name in ("../secret", "/etc/passwd"):
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
        assert "does not list the parts" in refusal(folder)
