"""Image and text towers against the modules of `transformers` and open_clip, on the same random weights."""

import json

import numpy as np
import pytest
from tests.backbones.tiny import networks

from wordreel.backbones.layouts import to_huggingface, to_openai
from wordreel.backbones.read_backbone import read_backbone

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
open_clip = pytest.importorskip("open_clip")

VISION = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4,
    "image_size": 50, "patch_size": 8,
}  # fmt: skip
TEXT = {
    "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "vocab_size": 99, "max_position_embeddings": 20, "bos_token_id": 97, "eos_token_id": 98,
}  # fmt: skip
OPEN_TEXT = {"context_length": 20, "vocab_size": 99, "width": 48, "heads": 4, "layers": 3}
SIGLIP_TEXT = {
    **OPEN_TEXT, "no_causal_mask": True, "proj_bias": True, "pool_type": "last",
    "norm_kwargs": {"eps": 1e-6},
}  # fmt: skip


def vary(model):
    """Move every weight off its initial value, zeros and ones among them."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    return model.eval()


def compare(path, tmp_path, image_features, text_features):
    """Build the towers from `path`; both must agree with the reference to 1e-5 of its largest number."""
    config, state = read_backbone(path)
    image, text = networks(config, state, tmp_path / "built")
    torch.manual_seed(1)
    frames = torch.randn(2, 3, config.vision.size, config.vision.size)
    end, length = config.text.vocabulary - 1, config.text.length
    ids = torch.randint(3, end - 1, (3, length))
    for row, at in enumerate((3, length // 2, length - 1)):
        ids[row, at:] = 1
        ids[row, at] = end
    with torch.no_grad():
        pairs = (
            (image(frames=frames.numpy()), image_features(frames)),
            (text(ids=ids.numpy()), text_features(ids)),
        )
    for ours, theirs in pairs:
        expected = getattr(theirs, "pooler_output", theirs).numpy()
        assert expected.std() > 0.1
        np.testing.assert_allclose(ours["features"], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    return config


def check_transformers(model, tmp_path):
    vary(model).save_pretrained(tmp_path / "model")
    return compare(
        tmp_path / "model",
        tmp_path,
        lambda frames: model.get_image_features(pixel_values=frames),
        lambda ids: model.get_text_features(input_ids=ids),
    )


@pytest.mark.parametrize("activation", ["quick_gelu", "gelu"])
def test_clip_as_transformers(activation, tmp_path):
    act = {"hidden_act": activation}
    config = transformers.CLIPConfig(
        text_config={**TEXT, **act}, vision_config={**VISION, **act}, projection_dim=40
    )
    assert check_transformers(transformers.CLIPModel(config), tmp_path).vision.activation == activation


def test_full_size_clip_as_transformers(tmp_path):
    check_transformers(transformers.CLIPModel(transformers.CLIPConfig()), tmp_path)


def test_siglip_as_transformers(tmp_path):
    config = transformers.SiglipConfig(text_config={**TEXT, "projection_size": 64}, vision_config=VISION)
    assert check_transformers(transformers.SiglipModel(config), tmp_path).family == "siglip"


def test_full_size_siglip_as_transformers(tmp_path):
    check_transformers(transformers.SiglipModel(transformers.SiglipConfig()), tmp_path)


def test_siglip_2_as_transformers(tmp_path):
    text = {**TEXT, "vocab_size": 256_000, "hidden_size": 16, "projection_size": 64}
    config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
    assert check_transformers(transformers.SiglipModel(config), tmp_path).family == "siglip2"


def save_open_clip(model, content, folder, binary=False):
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": content}))
    state = {key: value.contiguous() for key, value in model.state_dict().items()}
    if binary:
        torch.save(state, folder / "open_clip_pytorch_model.bin")
    else:
        from safetensors.torch import save_file

        save_file(state, folder / "open_clip_model.safetensors")
    return folder


def check_open_clip(content, tmp_path, binary=False, custom=True):
    kind = open_clip.CustomTextCLIP if custom else open_clip.CLIP
    model = vary(kind(**content))
    folder = save_open_clip(model, content, tmp_path / "model", binary)
    return model, compare(folder, tmp_path, model.encode_image, model.encode_text)


@pytest.mark.parametrize("custom", [True, False])
@pytest.mark.parametrize("quick", [True, False])
def test_clip_as_open_clip(custom, quick, tmp_path):
    vision = {"layers": 3, "width": 80, "head_width": 20, "patch_size": 8, "image_size": 48, "mlp_ratio": 3.5}
    content = {"embed_dim": 40, "quick_gelu": quick, "vision_cfg": vision, "text_cfg": OPEN_TEXT}
    check_open_clip(content, tmp_path, binary=quick, custom=custom)


@pytest.mark.parametrize(
    ("name", "size", "activation"),
    [("vit_base_patch32_siglip_256", 256, "gelu_tanh"), ("vit_base_patch16_siglip_224", 224, "gelu")],
)
def test_siglip_as_open_clip(name, size, activation, tmp_path):
    vision = {"image_size": size, "timm_model_name": name, "timm_pool": "map", "timm_proj": "none"}
    act = {"act_kwargs": {"approximate": "tanh"}} if activation == "gelu_tanh" else {}
    content = {"embed_dim": 768, "vision_cfg": vision, "text_cfg": {**SIGLIP_TEXT, **act}}
    config = check_open_clip(content, tmp_path)[1]
    assert (config.vision.activation, config.text.activation) == (activation, activation)


def test_pe_core_as_open_clip_and_in_its_own_layout(tmp_path):
    vision = {
        "image_size": 384, "timm_model_name": "vit_pe_core_tiny_patch16_384", "timm_pool": "map",
        "timm_proj": None,
    }  # fmt: skip
    text = {**OPEN_TEXT, "width": 64, "heads": 1}
    model, _ = check_open_clip({"embed_dim": 64, "vision_cfg": vision, "text_cfg": text}, tmp_path)
    with torch.no_grad():
        model.visual.trunk.head.bias.zero_()  # the Perception Encoder's projection has none
    theirs = dict(to_openai(to_huggingface({k: v.numpy() for k, v in model.state_dict().items()})))
    del theirs["visual_projection.bias"]
    torch.save({key: torch.tensor(value) for key, value in theirs.items()}, tmp_path / "PE-Core.pt")
    config = compare(tmp_path / "PE-Core.pt", tmp_path, model.encode_image, model.encode_text)
    assert (config.family, config.vision.rotary) == ("pe-core", True)


def test_openais_state_dict_as_open_clip(tmp_path):
    from open_clip.model import build_model_from_openai_state_dict

    vision = {"layers": 3, "width": 128, "patch_size": 8, "image_size": 48}
    text = {**OPEN_TEXT, "width": 64, "heads": 1}
    first = open_clip.CLIP(embed_dim=40, quick_gelu=True, vision_cfg=vision, text_cfg=text)
    state = {key: value for key, value in vary(first).state_dict().items() if key != "attn_mask"}
    model = build_model_from_openai_state_dict(dict(state)).float().eval()  # it rounds weights to half
    torch.save(model.state_dict(), tmp_path / "ViT.pt")
    compare(tmp_path / "ViT.pt", tmp_path, model.encode_image, model.encode_text)
