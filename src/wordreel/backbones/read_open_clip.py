"""Read the configuration of an open_clip model: `open_clip_config.json`, and the shapes of its weights.

The file names either a vision transformer in OpenAI's layout or one of `timm`. Every size is taken from the
weights and must agree with what the file says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wordreel.backbones.config import (
    Activation,
    BackboneConfig,
    Family,
    ImageTransform,
    TextTowerConfig,
    TokenizerConfig,
    VisionTowerConfig,
)
from wordreel.backbones.infer_config import heads_for, infer_text, infer_vision
from wordreel.backbones.mobileclip import infer_image_tower, timm_name, usual_transform
from wordreel.backbones.read_config import (
    SIGLIP2_VOCABULARY,
    SUPPORTED,
    Json,
    check_heads,
    number,
    triple,
)
from wordreel.errors import WeightsError
from wordreel.runtime.nets.checkpoint import Array

State = Mapping[str, Array]
UNSUPPORTED = (
    "ls_init_value", "attentional_pool", "block_type", "qk_norm", "scaled_cosine_attn", "scale_heads",
    "scale_attn_inner", "scale_attn", "scale_fc", "embed_cls", "hf_model_name", "use_pad_mask",
)  # fmt: skip
MOBILECLIP = re.compile(r"fastvit_mci\d|vit_base_mci_224")
TIMM_VIT = re.compile(r"vit_\w+_patch\d+_(siglip|clip)_\d+|vit_pe_core_\w+_patch\d+_\d+")
TANH = re.compile(r"vit_(base_patch32|large_patch16_siglip_512|so400m_patch16|giantopt_patch16)")


def from_open_clip(name: str, content: Json, state: State) -> BackboneConfig:
    """The configuration of a model from its file and its weights, named as in `transformers`."""
    model = _section(content, "model_cfg") or content
    vision, text = _section(model, "vision_cfg"), _section(model, "text_cfg")
    for section in (vision, text):
        if odd := next((key for key in UNSUPPORTED if section.get(key)), None):
            raise WeightsError(f"{name} uses {odd} of open_clip, which is not supported", SUPPORTED)
    timm = str(vision.get("timm_model_name") or "")
    usual: Activation = "quick_gelu" if model.get("quick_gelu") else "gelu"
    image_tower = _timm_vision(name, timm, vision, state) if timm else _vision(name, vision, usual, state)
    text_tower = _text(name, text, usual, state)
    family: Family = "pe-core" if "pe_core" in timm else "clip"
    if "siglip" in timm:
        family = "siglip2" if text_tower.vocabulary == SIGLIP2_VOCABULARY else "siglip"
    if MOBILECLIP.fullmatch(timm):
        family = "mobileclip"
    dim = number(model, "embed_dim", image_tower.width)
    return BackboneConfig(
        name=name,
        family=family,
        dim=dim,
        vision=image_tower,
        text=text_tower,
        transform=_transform(
            _section(content, "preprocess_cfg"),
            usual_transform(image_tower) if family == "mobileclip" else ImageTransform(image_tower.size),
        ),
        tokenizer=_tokenizer(name, family, text, text_tower),
    )


def _vision(name: str, section: Json, activation: Activation, state: State) -> VisionTowerConfig:
    if isinstance(section.get("layers"), list):
        raise WeightsError(f"{name} has a ResNet for pictures, which is not supported", SUPPORTED)
    if section.get("pool_type", "tok") != "tok":
        raise WeightsError(f"{name} averages the patches of a picture, which is not supported", SUPPORTED)
    width = number(section, "width", 768)
    tower = infer_vision(
        name,
        state,
        activation=_activation(section, activation),
        epsilon=_epsilon(section),
        heads=width // number(section, "head_width", 64),
    )
    declared = {
        "width": width,
        "depth": number(section, "layers", 12),
        "patch": number(section, "patch_size", 16),
        "size": number(section, "image_size", 224),
    }
    _agree(name, "image", tower, declared)
    check_heads(tower.width, tower.heads)
    return tower


def _timm_vision(name: str, model: str, section: Json, state: State) -> VisionTowerConfig:
    if MOBILECLIP.fullmatch(model):
        tower = infer_image_tower(name, state)
        if timm_name(tower) != model:
            raise WeightsError(
                f"{name} is unlike its configuration: it has a {timm_name(tower)}, not a {model}"
            )
        return replace(tower, size=number(section, "image_size", tower.size))
    if not TIMM_VIT.fullmatch(model):
        raise WeightsError(f"{name} has the image tower {model} of timm, which is not supported", SUPPORTED)
    siglip = "siglip" in model
    tower = infer_vision(
        name,
        state,
        activation="gelu_tanh" if siglip and TANH.match(model) else "gelu",
        epsilon=1e-6 if siglip else 1e-5,
        rotary="pe_core" in model,
    )
    heads = 16 if "clip" in model and tower.width == 1280 else heads_for(tower.width)
    size = number(section, "image_size", int(model.rsplit("_", 1)[1]))
    if size // tower.patch != tower.size // tower.patch:
        raise WeightsError(
            f"{name} is for pictures of {tower.size} pixels, not the {size} of its configuration"
        )
    return replace(tower, size=size, heads=heads)


def _text(name: str, section: Json, activation: Activation, state: State) -> TextTowerConfig:
    tower = infer_text(
        name,
        state,
        activation=_activation(section, activation),
        epsilon=_epsilon(section),
        heads=number(section, "heads", 8),
        causal=not section.get("no_causal_mask"),
    )
    declared = {
        "width": number(section, "width", 512),
        "depth": number(section, "layers", 12),
        "length": number(section, "context_length", 77),
        "vocabulary": number(section, "vocab_size", 49408),
    }
    _agree(name, "text", tower, declared)
    check_heads(tower.width, tower.heads)
    pool = section.get("pool_type", "argmax")
    if pool == "last":
        return replace(tower, pooling="last")
    if pool == "eos":
        return replace(tower, end_token=number(section, "eos_id", 2))
    if pool != "argmax":
        raise WeightsError(f"{name} takes the {pool!r} token of a text, which is not supported", SUPPORTED)
    return tower


def _agree(
    name: str, what: str, tower: VisionTowerConfig | TextTowerConfig, declared: Mapping[str, int]
) -> None:
    for key, value in declared.items():
        if (actual := getattr(tower, key)) != value:
            raise WeightsError(
                f"{name} is unlike its configuration: the {key} of its {what} tower is {actual}, not {value}"
            )


def _tokenizer(name: str, family: Family, section: Json, tower: TextTowerConfig) -> TokenizerConfig:
    if family in ("siglip", "siglip2"):
        second = family == "siglip2"
        return TokenizerConfig("siglip2" if second else "siglip", tower.length, 0 if second else 1)
    own = str(section.get("hf_tokenizer_name") or "")
    if own and "clip" not in own.lower():
        raise WeightsError(f"{name} uses the tokenizer {own}, which is not supported", SUPPORTED)
    return TokenizerConfig("clip", tower.length)


def _transform(section: Json, usual: ImageTransform) -> ImageTransform:
    mode, interpolation = (
        section.get("resize_mode", "shortest"),
        section.get("interpolation", usual.interpolation),
    )
    if mode not in ("shortest", "squash") or interpolation not in ("bicubic", "bilinear"):
        raise WeightsError(f"pictures are resized by {mode!r} and {interpolation!r}, which is not supported")
    return ImageTransform(
        size=usual.size,
        mean=triple(section.get("mean", usual.mean), "mean"),
        std=triple(section.get("std", usual.std), "std"),
        resize="crop" if mode == "shortest" else "squash",
        interpolation=interpolation,
    )


def _activation(section: Json, usual: Activation) -> Activation:
    approximate = _section(section, "act_kwargs").get("approximate")
    return "gelu_tanh" if approximate == "tanh" and usual == "gelu" else usual


def _epsilon(section: Json) -> float:
    return float(_section(section, "norm_kwargs").get("eps", 1e-5))


def _section(content: Json, key: str) -> Json:
    value: Any = content.get(key)
    return value if isinstance(value, dict) else {}
