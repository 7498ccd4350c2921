"""Infer the configuration of a joint picture-text model from the shapes of its weights.

Shapes tell everything but the number of attention heads, the activation, and the ε of layer norms: for
checkpoints that come without a configuration, those are what their publishers always use.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt

from wordreel.backbones.config import (
    Activation,
    BackboneConfig,
    ImageTransform,
    TextTowerConfig,
    TokenizerConfig,
    Triple,
    VisionTowerConfig,
)
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.nets.checkpoint import Array

State = Mapping[str, Array]
VISION, TEXT = "vision_model", "text_model"
HEADS = {1152: 16, 1280: 20, 1408: 16, 1536: 16}  # by width; otherwise 64 numbers each
HALF: Triple = (0.5, 0.5, 0.5)


def heads_for(width: int) -> int:
    """The published number of heads for a width.

    >>> heads_for(768)
    12
    """
    return HEADS.get(width, max(1, width // 64))


def infer_config(name: str, state: State) -> BackboneConfig:
    """The configuration of OpenAI's CLIP or of PE-Core, from weights named as in `transformers`."""
    core = f"{VISION}.head.probe" in state
    activation: Activation = "gelu" if core else "quick_gelu"
    vision = infer_vision(name, state, activation=activation, epsilon=1e-5, rotary=core)
    text = infer_text(name, state, activation=activation, epsilon=1e-5)
    dim = _shape(name, state, "visual_projection.weight")[0]
    size = vision.size
    return BackboneConfig(
        name=name,
        family="pe-core" if core else "clip",
        dim=dim,
        vision=vision,
        text=text,
        transform=ImageTransform(size, HALF, HALF, "squash", "bilinear") if core else ImageTransform(size),
        tokenizer=TokenizerConfig(kind="clip", length=text.length, cleaning="openai"),
    )


def infer_vision(
    name: str, state: State, *, activation: Activation, epsilon: float, rotary: bool = False, heads: int = 0
) -> VisionTowerConfig:
    """The image tower that these weights fit."""
    width, _, patch, _ = _shape(name, state, f"{VISION}.embeddings.patch_embedding.weight", 4)
    tokens = _shape(name, state, f"{VISION}.embeddings.position_embedding.weight", 2)[0]
    class_token = f"{VISION}.embeddings.class_embedding" in state
    side = isqrt(max(0, tokens - class_token))
    if side == 0 or side * side + class_token != tokens:
        raise WeightsError(f"{name} has positions for {tokens} tokens, which do not form a square")
    pooled = f"{VISION}.head.probe" in state
    return VisionTowerConfig(
        size=side * patch,
        patch=patch,
        width=width,
        depth=_depth(state, VISION),
        heads=heads or heads_for(width),
        mlp=_shape(name, state, f"{VISION}.encoder.layers.0.mlp.fc1.weight")[0],
        activation=activation,
        epsilon=epsilon,
        class_token=class_token,
        patch_bias=f"{VISION}.embeddings.patch_embedding.bias" in state,
        pre_norm=f"{VISION}.pre_layrnorm.weight" in state,
        pooling="attention" if pooled else "class",
        pool_heads=8 if rotary else 0,
        pool_mlp=_shape(name, state, f"{VISION}.head.mlp.fc1.weight")[0] if pooled else 0,
        projection="visual_projection.weight" in state,
        projection_bias="visual_projection.bias" in state,
        rotary=rotary,
    )


def infer_text(
    name: str, state: State, *, activation: Activation, epsilon: float, heads: int = 0, causal: bool = True
) -> TextTowerConfig:
    """The text tower that these weights fit."""
    vocabulary, width = _shape(name, state, f"{TEXT}.embeddings.token_embedding.weight", 2)
    return TextTowerConfig(
        vocabulary=vocabulary,
        length=_shape(name, state, f"{TEXT}.embeddings.position_embedding.weight")[0],
        width=width,
        depth=_depth(state, TEXT),
        heads=heads or heads_for(width),
        mlp=_shape(name, state, f"{TEXT}.encoder.layers.0.mlp.fc1.weight")[0],
        activation=activation,
        epsilon=epsilon,
        causal=causal,
        projection_bias=f"{TEXT}.head.bias" in state,
        mixers=f"{TEXT}.mixers.0.layer_scale.gamma" in state,
    )


def _shape(name: str, state: State, key: str, dims: int = 0) -> tuple[int, ...]:
    if key not in state or state[key].ndim != (dims or max(1, state[key].ndim)):
        raise WeightsError(
            f"{name} holds no CLIP-like model: it has no {key} of the usual shape",
            NextStep("use a CLIP, SigLIP, SigLIP 2, MobileCLIP or PE-Core checkpoint"),
        )
    return state[key].shape


def _depth(state: State, at: str) -> int:
    numbers = {key.split(".")[3] for key in state if key.startswith(f"{at}.encoder.layers.")}
    return len(numbers)
