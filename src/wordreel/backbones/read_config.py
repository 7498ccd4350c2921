"""Read the configuration of a joint picture-text model from the files published beside its weights.

`config.json` and `preprocessor_config.json` are those of `transformers`. A value that a file leaves out has
the default of the program that wrote the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

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

Json = Mapping[str, Any]
SUPPORTED = NextStep("use a CLIP, SigLIP, SigLIP 2, MobileCLIP or PE-Core checkpoint")
ACTIVATIONS: Mapping[str, Activation] = {
    "quick_gelu": "quick_gelu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
MAX_NUMBER = 2**20  # no size in a configuration comes near
SIGLIP2_VOCABULARY = 256_000


def read_json(path: Path) -> Json:
    """The object in a small JSON file."""
    try:
        if path.stat().st_size > MAX_NUMBER:
            raise WeightsError(f"{path.name} is too large to be a configuration")
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path.name} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise WeightsError(f"{path.name} holds no JSON object")
    return content


def from_huggingface(name: str, config: Json, preprocessor: Json) -> BackboneConfig:
    """The configuration in `config.json` and `preprocessor_config.json` (empty: the usual preprocessing)."""
    kind = str(config.get("model_type", "unknown"))
    if kind == "clip":
        return _clip(name, config, preprocessor)
    if kind == "siglip":
        return _siglip(name, config, preprocessor)
    if kind == "siglip2":
        raise WeightsError(
            f"{name} is a NaFlex model of SigLIP 2, whose pictures keep their shape; only models of a fixed "
            "resolution are read",
            NextStep(
                "use a SigLIP 2 checkpoint of a fixed resolution, such as google/siglip2-base-patch16-224"
            ),
        )
    raise WeightsError(f"{name} is a model of the type {kind!r}, which is not a supported one", SUPPORTED)


def _clip(name: str, config: Json, preprocessor: Json) -> BackboneConfig:
    text, vision = _section(config, "text"), _section(config, "vision")
    size = number(vision, "image_size", 224)
    length = number(text, "max_position_embeddings", 77)
    vocabulary = number(text, "vocab_size", 49408)
    return BackboneConfig(
        name=name,
        family="clip",
        dim=number(config, "projection_dim", 512),
        vision=VisionTowerConfig(
            size=size,
            patch=number(vision, "patch_size", 32),
            **_blocks(vision, width=768, heads=12, mlp=3072, activation="quick_gelu", epsilon=1e-5),
        ),
        text=TextTowerConfig(
            vocabulary=vocabulary,
            length=length,
            end_token=_end_token(text, vocabulary),
            **_blocks(text, width=512, heads=8, mlp=2048, activation="quick_gelu", epsilon=1e-5),
        ),
        transform=_transform(preprocessor, ImageTransform(size=size)),
        tokenizer=TokenizerConfig(kind="clip", length=length, cleaning="huggingface"),
    )


def _siglip(name: str, config: Json, preprocessor: Json) -> BackboneConfig:
    text, vision = _section(config, "text"), _section(config, "vision")
    if vision.get("vision_use_head") is False:
        raise WeightsError(f"{name} has no pooling head, so it gives no embedding of a picture", SUPPORTED)
    size = number(vision, "image_size", 224)
    length = number(text, "max_position_embeddings", 64)
    vocabulary = number(text, "vocab_size", 32000)
    second = vocabulary == SIGLIP2_VOCABULARY
    tower = VisionTowerConfig(
        size=size,
        patch=number(vision, "patch_size", 16),
        class_token=False,
        patch_bias=True,
        pre_norm=False,
        pooling="attention",
        projection=False,
        **_blocks(vision, width=768, heads=12, mlp=3072, activation="gelu_tanh", epsilon=1e-6),
    )
    half: Triple = (0.5, 0.5, 0.5)
    return BackboneConfig(
        name=name,
        family="siglip2" if second else "siglip",
        dim=tower.width,
        vision=tower,
        text=TextTowerConfig(
            vocabulary=vocabulary,
            length=length,
            causal=False,
            pooling="last",
            projection_bias=True,
            **_blocks(text, width=768, heads=12, mlp=3072, activation="gelu_tanh", epsilon=1e-6),
        ),
        transform=_transform(
            preprocessor, ImageTransform(size, half, half, "squash", "bilinear" if second else "bicubic")
        ),
        tokenizer=TokenizerConfig(
            kind="siglip2" if second else "siglip",
            length=length,
            padding=0 if second else 1,
            cleaning="huggingface",
        ),
    )


def _section(config: Json, tower: str) -> Json:
    """One tower's values; older files repeat them in `…_config_dict`, which wins."""
    first, second = config.get(f"{tower}_config"), config.get(f"{tower}_config_dict")
    return {**(first if isinstance(first, dict) else {}), **(second if isinstance(second, dict) else {})}


def _blocks(
    section: Json, *, width: int, heads: int, mlp: int, activation: Activation, epsilon: float
) -> dict[str, Any]:
    values: dict[str, Any] = {
        "width": number(section, "hidden_size", width),
        "depth": number(section, "num_hidden_layers", 12),
        "heads": number(section, "num_attention_heads", heads),
        "mlp": number(section, "intermediate_size", mlp),
        "epsilon": _real(section, "layer_norm_eps", epsilon),
        "activation": activation,
    }
    if (named := section.get("hidden_act")) is not None:
        if named not in ACTIVATIONS:
            raise WeightsError(f"the activation {named!r} is not known", SUPPORTED)
        values["activation"] = ACTIVATIONS[named]
    check_heads(values["width"], values["heads"])
    return values


def check_heads(width: int, heads: int) -> None:
    """Raise unless the heads share the width evenly."""
    if width % heads:
        raise WeightsError(f"the configuration has {heads} attention heads for a width of {width}")


def _end_token(text: Json, vocabulary: int) -> int:
    """Old files say 2 whatever the vocabulary; the largest id is meant then, as by `transformers`."""
    end = text.get("eos_token_id", vocabulary - 1)
    return -1 if end in (2, vocabulary - 1) or not isinstance(end, int) else end


def _transform(preprocessor: Json, usual: ImageTransform) -> ImageTransform:
    def edge(value: Any) -> int:
        if isinstance(value, dict):
            sides = {value[side] for side in ("shortest_edge", "height", "width") if side in value}
            value = sides.pop() if len(sides) == 1 else None
        if not isinstance(value, int):
            raise WeightsError(
                f"pictures of the size {preprocessor.get('size')!r} are not read; only squares are"
            )
        return value

    if not preprocessor:
        return usual
    crops = bool(preprocessor.get("do_center_crop", usual.resize == "crop"))
    size = edge(preprocessor.get("size", usual.size))
    if crops and (cut := edge(preprocessor.get("crop_size", size))) != size:
        raise WeightsError(f"pictures are resized to {size} and cut to {cut}; only equal sizes are read")
    resample = preprocessor.get("resample", 3)
    if resample not in (2, 3):
        raise WeightsError(f"the interpolation {resample!r} is neither bilinear (2) nor bicubic (3)")
    return ImageTransform(
        size=size,
        mean=triple(preprocessor.get("image_mean", usual.mean), "image_mean"),
        std=triple(preprocessor.get("image_std", usual.std), "image_std"),
        resize="crop" if crops else "squash",
        interpolation="bicubic" if resample == 3 else "bilinear",
    )


def triple(value: Any, key: str) -> Triple:
    """Three numbers."""
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(_is_real(part) for part in value):
        raise WeightsError(f"{key} is {value!r:.60}, not three numbers")
    return cast(Triple, tuple(float(part) for part in value))


def number(section: Json, key: str, default: int) -> int:
    """A positive whole number of a size that a model can have."""
    value = section.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < MAX_NUMBER:
        raise WeightsError(f"{key} is {value!r:.60}, not a size that a model can have")
    return value


def _real(section: Json, key: str, default: float) -> float:
    value = section.get(key, default)
    if not _is_real(value):
        raise WeightsError(f"{key} is {value!r:.60}, not a number")
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
