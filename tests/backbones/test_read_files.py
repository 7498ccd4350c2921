"""Reading checkpoints of OpenAI, open_clip and the Perception Encoder."""

import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.backbones import naive_towers, tiny
from tests.backbones.layout_files import openai_state, timm_siglip_state

from wordreel.backbones.config import BackboneConfig, TextTowerConfig, VisionTowerConfig
from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.towers import check_state
from wordreel.errors import WeightsError
from wordreel.runtime.torch_files.torchscript import is_torchscript, read_torchscript

torch = pytest.importorskip("torch")

OPENAI = BackboneConfig(
    "tiny",
    dim=10,
    vision=VisionTowerConfig(size=16, patch=8, width=64, depth=2, heads=1, mlp=20),
    text=TextTowerConfig(vocabulary=50, length=9, width=64, depth=2, heads=1, mlp=14),
)
OPEN_CLIP_JSON = {
    "model_cfg": {
        "embed_dim": 10,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 12, "patch_size": 8, "head_width": 4},
        "text_cfg": {"context_length": 9, "vocab_size": 50, "width": 8, "heads": 2, "layers": 2},
    },
    "preprocess_cfg": {"mean": [0.1, 0.2, 0.3], "std": [0.5, 0.5, 0.5], "interpolation": "bilinear"},
}
SIGLIP_JSON = {
    "model_cfg": {
        "embed_dim": 12,
        "vision_cfg": {
            "image_size": 33, "timm_model_name": "vit_base_patch8_siglip_33", "timm_pool": "map",
            "timm_proj": "none",
        },
        "text_cfg": {
            "context_length": 7, "vocab_size": 40, "width": 8, "heads": 2, "layers": 2,
            "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6},
            "act_kwargs": {"approximate": "tanh"}, "hf_tokenizer_name": "timm/ViT-B-16-SigLIP",
        },
    },
    "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "squash"},
}  # fmt: skip


def save(path, state, **rest):
    torch.save({key: torch.tensor(np.array(value)) for key, value in state.items()} | rest, path)
    return path


def module_tree(state):
    """A torch module whose state dict has these names."""
    root = torch.nn.Module()
    for key, value in state.items():
        *places, leaf = key.split(".")
        at = root
        for place in places:
            if place not in dict(at.named_children()):
                at.add_module(place, torch.nn.Module())
            at = getattr(at, place)
        at.register_parameter(leaf, torch.nn.Parameter(torch.tensor(np.array(value))))
    return root


def test_a_state_dict_in_openais_layout_tells_its_configuration(tmp_path):
    state = tiny.random_state(OPENAI)
    config, read = read_backbone(save(tmp_path / "tiny.pt", openai_state(state)))
    assert (config.vision, config.text, config.dim) == (OPENAI.vision, OPENAI.text, 10)
    assert (config.family, config.transform.size, config.tokenizer.cleaning) == ("clip", 16, "openai")
    assert config.logit_scale == pytest.approx(30.0)
    check_state(config, read)
    assert all(np.array_equal(read[key], state[key]) for key in state)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_released_archive_is_read_without_running_it(tmp_path):
    state = tiny.random_state(OPENAI)
    halved = {key: value.astype(np.float16) for key, value in openai_state(state).items()}
    path = tmp_path / "ViT.pt"
    torch.jit.save(torch.jit.script(module_tree(halved)), str(path))
    assert is_torchscript(path)
    assert set(read_torchscript(path)) == set(halved)
    config, read = read_backbone(path)
    assert config.vision == OPENAI.vision
    check_state(config, read)
    for key in state:
        np.testing.assert_array_equal(read[key], state[key].astype(np.float16), err_msg=key)


def test_the_perception_encoder_tells_its_configuration(tmp_path):
    state = tiny.random_state(tiny.PE_CORE)
    config, read = read_backbone(save(tmp_path / "tiny-pe-core.pt", openai_state(state)))
    assert replace(config, logit_scale=100.0) == tiny.PE_CORE
    check_state(config, read)


def write(folder, content, state, name="open_clip_model.safetensors"):
    folder.mkdir(exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    save_file({key: np.ascontiguousarray(value) for key, value in state.items()}, folder / name)
    return folder


def test_an_open_clip_folder_is_read(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    config, read = read_backbone(write(tmp_path / "m", OPEN_CLIP_JSON, openai_state(state, "text.")))
    assert config.vision == replace(tiny.CLIP.vision, activation="gelu")
    assert config.text == replace(tiny.CLIP.text, activation="gelu")
    assert (config.transform.mean, config.transform.interpolation) == ((0.1, 0.2, 0.3), "bilinear")
    check_state(config, read)
    quick = {**OPEN_CLIP_JSON, "model_cfg": {**OPEN_CLIP_JSON["model_cfg"], "quick_gelu": True}}
    folder = write(tmp_path / "m", quick, openai_state(state))
    config, _ = read_backbone(folder)
    assert (config.vision, config.text) == (tiny.CLIP.vision, tiny.CLIP.text)
    assert read_backbone(folder / "open_clip_model.safetensors")[0] == config


def test_a_configuration_of_timm_beside_it_is_not_mistaken_for_one_of_transformers(tmp_path):
    folder = write(tmp_path / "m", OPEN_CLIP_JSON, openai_state(tiny.random_state(tiny.CLIP)))
    (folder / "config.json").write_text(json.dumps({"architecture": "vit_base_patch16_224"}))
    (folder / "model.safetensors").write_bytes((folder / "open_clip_model.safetensors").read_bytes())
    assert read_backbone(folder)[0].transform.mean == (0.1, 0.2, 0.3)


def test_open_clips_siglip_gives_the_same_features(tmp_path):
    state = tiny.random_state(tiny.SIGLIP)
    theirs = {**timm_siglip_state(state), "logit_bias": np.array([-10.0], np.float32)}
    config, read = read_backbone(write(tmp_path / "m", SIGLIP_JSON, theirs))
    config = replace(config, vision=replace(config.vision, heads=3))  # tinier than any published width
    assert config.text == tiny.SIGLIP.text
    assert config.vision == replace(tiny.SIGLIP.vision, activation="gelu", pool_mlp=20)
    assert (config.family, config.logit_bias, config.tokenizer.kind) == ("siglip", -10.0, "siglip")
    frames, ids = tiny.random_inputs(config)
    image, text = tiny.networks(config, read, tmp_path / "built")
    expected = naive_towers.image_features(config, state, frames)
    np.testing.assert_allclose(image(frames=frames)["features"], expected, rtol=2e-4, atol=2e-5)
    expected = naive_towers.text_features(config, state, ids)
    np.testing.assert_allclose(text(ids=ids)["features"], expected, rtol=2e-4, atol=2e-5)


def refusal(path):
    with pytest.raises(WeightsError) as caught:
        read_backbone(path)
    return str(caught.value)


def test_open_clip_models_that_compute_otherwise_are_refused(tmp_path):
    state = openai_state(tiny.random_state(tiny.CLIP))

    def with_values(tower, **values):
        model = OPEN_CLIP_JSON["model_cfg"]
        content = {"model_cfg": {**model, f"{tower}_cfg": {**model[f"{tower}_cfg"], **values}}}
        return refusal(write(tmp_path / "m", content, state))

    assert "ResNet" in with_values("vision", layers=[3, 4, 6, 3])
    assert "averages the patches" in with_values("vision", pool_type="avg")
    assert "uses ls_init_value" in with_values("vision", ls_init_value=0.1)
    assert "convnext_base of timm" in with_values("vision", timm_model_name="convnext_base")
    assert "uses hf_model_name" in with_values("text", hf_model_name="roberta-base")
    assert "the tokenizer bert-base-uncased" in with_values("text", hf_tokenizer_name="bert-base-uncased")
    assert "takes the 'first' token" in with_values("text", pool_type="first")
    assert "the depth of its text tower is 2, not 3" in with_values("text", layers=3)


def test_open_clip_checkpoints_without_a_configuration_are_refused(tmp_path):
    state = openai_state(tiny.random_state(OPENAI))
    named = save(tmp_path / "open_clip_pytorch_model.bin", state)
    trained = save(tmp_path / "epoch_5.pt", {f"module.{key}": value for key, value in state.items()})
    for path in (named, trained):
        assert "put the model's open_clip_config.json beside it" in refusal(path)


def test_other_checkpoints_are_refused(tmp_path):
    assert "holds no CLIP-like model" in refusal(save(tmp_path / "a.pt", {"fc.weight": np.zeros((2, 2))}))
    state = openai_state(tiny.random_state(OPENAI))
    state["visual.positional_embedding"] = state["visual.positional_embedding"][:4]
    assert "positions for 4 tokens" in refusal(save(tmp_path / "a.pt", state))
    (tmp_path / "a.pt").write_bytes(b"GIF89a")
    assert "neither a PyTorch checkpoint nor a safetensors file" in refusal(tmp_path / "a.pt")
    torch.save({"model": torch.nn.Linear(2, 2)}, tmp_path / "a.pt")
    assert "torch.nn.modules.linear" in refusal(tmp_path / "a.pt")
