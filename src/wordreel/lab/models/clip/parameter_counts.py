"""How many parameters a video-text model has, part by part, by formula: no torch, no weights, no time.

A block of width w and mlp m has 4w² + 4w (attention), 2wm + m + w (mlp) and 4w (two norms).
"""

from __future__ import annotations

from wordreel.backbones.config import BackboneConfig
from wordreel.lab.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig, VideoTextConfig
from wordreel.lab.models.parameter_counts import layer, linear


def image_tower(config: BackboneConfig) -> int:
    vision = config.vision
    patches = (vision.size // vision.patch) ** 2
    tokens = (patches + 2) * vision.width  # positions, the class token's too, and the class token
    blocks = vision.depth * layer(vision.width, vision.mlp)
    return tokens + _patch(config) + blocks + 4 * vision.width + vision.width * config.dim


def text_tower(config: BackboneConfig) -> int:
    text = config.text
    tables = (text.vocabulary + text.length) * text.width
    return tables + text.depth * layer(text.width, text.mlp) + 2 * text.width + text.width * config.dim


def _patch(config: BackboneConfig) -> int:
    return 3 * config.vision.patch**2 * config.vision.width


def video_text_parameters(config: VideoTextConfig) -> dict[str, int]:
    """Part → parameters.

    >>> sum(video_text_parameters(Clip4ClipConfig()).values())
    151277313
    """
    towers = {
        "image tower": image_tower(config.backbone),
        "text tower": text_tower(config.backbone),
        "logit scale": 1,
    }
    if isinstance(config, Clip2VideoConfig):
        return {**towers, **_clip2video(config)}
    return {**towers, **(_ts2net(config) if isinstance(config, TS2NetConfig) else _clip4clip(config))}


def _clip4clip(config: Clip4ClipConfig) -> dict[str, int]:
    dim = config.backbone.dim
    positions, blocks = config.backbone.text.length * dim, config.layers * layer(dim, 4 * dim)
    heads = {
        "mean": {},
        "lstm": {"frame positions, unused": positions, "LSTM": 4 * dim * (2 * dim + 2)},
        "transformer": {"frame positions": positions, "transformer": blocks},
        "tight": {
            "positions": positions,
            "transformer": blocks,
            "pooler": 2 * dim + linear(dim, dim),
            "similarity": linear(dim, 1),
        },
    }
    return {"3-D patch": 3 * _patch(config.backbone) if config.patch == "3d" else 0, **heads[config.head]}


def _clip2video(config: Clip2VideoConfig) -> dict[str, int]:
    dim = config.backbone.dim
    one = layer(dim, 4 * dim)
    return {
        "frame positions": config.backbone.text.length * dim,
        "types": 2 * dim,
        "transformer": config.layers * one,
        "difference": (dim * dim if config.difference == "mlp" else one) + 2 * dim,
        "alignment": one + 2 * config.centres * dim,
    }


def _ts2net(config: TS2NetConfig) -> dict[str, int]:
    dim, half = config.backbone.dim, config.backbone.dim // 2
    return {
        "frame positions": config.positions * dim,
        "transformer": config.layers * layer(dim, 4 * dim),
        "token selection": 2 * dim + dim * half + 2 * half * half + half,
    }
