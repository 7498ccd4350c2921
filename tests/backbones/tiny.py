"""Tiny joint picture-text models with random weights."""

from dataclasses import replace

import numpy as np
import onnx

from wordreel.backbones.config import (
    BackboneConfig,
    ImageTransform,
    TextTowerConfig,
    TokenizerConfig,
    VisionTowerConfig,
)
from wordreel.backbones.towers import build_towers, tower_shapes
from wordreel.runtime.sessions import Network

CLIP = BackboneConfig(
    "tiny-clip",
    dim=10,
    vision=VisionTowerConfig(size=32, patch=8, width=12, depth=2, heads=3, mlp=20),
    text=TextTowerConfig(vocabulary=50, length=9, width=8, depth=2, heads=2, mlp=14),
    transform=ImageTransform(size=32),
)
SIGLIP = BackboneConfig(
    "tiny-siglip",
    family="siglip",
    dim=12,
    vision=VisionTowerConfig(
        size=33, patch=8, width=12, depth=2, heads=3, mlp=20, activation="gelu_tanh", epsilon=1e-6,
        class_token=False, patch_bias=True, pre_norm=False, pooling="attention", projection=False,
    ),
    text=TextTowerConfig(
        vocabulary=40, length=7, width=8, depth=2, heads=2, mlp=14, activation="gelu_tanh", epsilon=1e-6,
        causal=False, pooling="last", projection_bias=True,
    ),
    transform=ImageTransform(33, (0.5,) * 3, (0.5,) * 3, "squash"),
)  # fmt: skip
END = replace(CLIP, text=replace(CLIP.text, end_token=47, activation="gelu"))
PE_CORE = BackboneConfig(
    "tiny-pe-core",
    family="pe-core",
    dim=10,
    vision=VisionTowerConfig(
        size=24, patch=8, width=64, depth=2, heads=1, mlp=20, activation="gelu", pooling="attention",
        pool_heads=8, pool_mlp=16, rotary=True,
    ),
    text=replace(CLIP.text, width=64, heads=1, activation="gelu"),
    transform=ImageTransform(24, (0.5,) * 3, (0.5,) * 3, "squash", "bilinear"),
    tokenizer=TokenizerConfig(length=9),
)  # fmt: skip
NO_CLASS = replace(
    PE_CORE, vision=replace(PE_CORE.vision, class_token=False, projection_bias=True, heads=2, pool_mlp=0)
)
ALL = {
    "clip": CLIP,
    "end-token": END,
    "siglip": SIGLIP,
    "pe-core": PE_CORE,
    "pe-core without class": NO_CLASS,
}


def random_state(config, seed=0):
    """Weights under which signals neither vanish nor explode."""
    rng = np.random.default_rng(seed)
    state = {}
    for key, shape in tower_shapes(config).items():
        scale = 0.3 if len(shape) == 1 else 1 / np.sqrt(np.prod(shape[1:]))
        mean = 1.0 if "norm" in key and key.endswith("weight") else 0.0
        state[key] = (mean + scale * rng.normal(size=shape)).astype(np.float32)
    state["logit_scale"] = (
        np.float32(np.log(30.0))[None][0] if config.family == "clip" else np.zeros(1, np.float32)
    )
    return state


def random_inputs(config, count=3, seed=1):
    """`frames [count, 3, size, size]` and `ids [count, length]` with one end token and padding."""
    rng = np.random.default_rng(seed)
    frames = rng.normal(size=(count, 3, config.vision.size, config.vision.size)).astype(np.float32)
    text = config.text
    end = text.end_token if text.end_token >= 0 else text.vocabulary - 1
    ids = rng.integers(1, end, (count, text.length))
    for row, length in enumerate(rng.integers(2, text.length, count)):
        ids[row, length:] = 0
        ids[row, length] = end
    return frames, ids


def networks(config, state, folder, **options):
    """The image and the text tower, built and loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    loaded = []
    for name, model in zip(("image", "text"), build_towers(config, state, folder, **options), strict=True):
        onnx.save(model, str(folder / f"{name}.onnx"))
        loaded.append(Network(folder / f"{name}.onnx"))
    return loaded
