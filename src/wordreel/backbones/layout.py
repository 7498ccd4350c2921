"""Find the files of a joint picture-text model in the layouts in which hubs publish ONNX.

    hub      [onnx/]vision_model.onnx, [onnx/]text_model.onnx, tokenizer.json, preprocessor_config.json
    Immich   visual/model.onnx, textual/model.onnx, textual/tokenizer.json, visual/preprocess_cfg.json

Other precisions of the hub layout have a suffix (`vision_model_fp16.onnx`). Large models keep their weights
in files beside the graph. `head.onnx` and `head.json` are written by `wordreel.lab` for fine-tuned models.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordreel.backbones.config import Family, HeadConfig, ImageTransform, Interpolation, TextSettings, Triple
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.sessions import Precision

SUFFIXES: Mapping[Precision, tuple[str, ...]] = {
    "fp32": ("",), "fp16": ("_fp16",), "int8": ("_int8", "_quantized", "_uint8"),
}  # fmt: skip
CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"
HEAD, HEAD_CONFIG = "head.onnx", "head.json"
MAX_LENGTH = 1024  # tokens; tokenizers without a limit claim 10³⁰
MAX_JSON = 2**20
INTERPOLATIONS: dict[int, Interpolation] = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers
UNSUPPORTED = NextStep("choose another model of `wordreel models`")


@dataclass(frozen=True)
class Layout:
    """The files of one model, relative to its folder; empty where there is none."""

    vision: str
    text: str
    tokenizer: str
    preprocessor: str
    tokenizer_config: str = ""
    config: str = ""
    head: str = ""
    others: tuple[str, ...] = ()  # weights beside the graphs, and the head's description

    @property
    def files(self) -> tuple[str, ...]:
        """Return all files of the model."""
        named = (self.vision, self.text, self.tokenizer, self.preprocessor, self.tokenizer_config,
                 self.config, self.head)  # fmt: skip
        return (*filter(None, named), *self.others)


def find_layout(names: Collection[str], precision: Precision = "fp32") -> Layout | None:
    """Return the layout that files of these names form; None if they form none.

    >>> find_layout(["visual/model.onnx", "textual/model.onnx"]) is None
    True
    """
    for suffix in SUFFIXES[precision]:
        for at in ("onnx/", ""):
            vision, text = (f"{at}{tower}_model{suffix}.onnx" for tower in ("vision", "text"))
            if vision in names and text in names:
                return _whole(names, vision, text, (at, ""), (at, ""), "preprocessor_config.json")
    if precision == "fp32" and {"visual/model.onnx", "textual/model.onnx"} <= set(names):
        folders = ("textual/",), ("visual/",)
        return _whole(names, "visual/model.onnx", "textual/model.onnx", *folders, "preprocess_cfg.json")
    return None


def _whole(
    names: Collection[str],
    vision: str,
    text: str,
    text_folders: tuple[str, ...],
    picture_folders: tuple[str, ...],
    preprocessor: str,
) -> Layout | None:
    def first(name: str, folders: tuple[str, ...]) -> str:
        return next((at + name for at in folders if at + name in names), "")

    layout = Layout(
        vision,
        text,
        first(TOKENIZER, text_folders),
        first(preprocessor, picture_folders),
        first(TOKENIZER_CONFIG, text_folders),
        first(CONFIG, ("",)),
        first(HEAD, ("",)),
    )
    if not layout.tokenizer or not layout.preprocessor:
        return None
    graphs = (vision, text, *filter(None, [layout.head]))
    beside = [
        name
        for name in names
        if name.startswith(tuple(f"{graph}{mark}" for graph in graphs for mark in "_."))
    ]
    beside += [HEAD_CONFIG] if layout.head and HEAD_CONFIG in names else []
    return replace(layout, others=tuple(sorted(beside)))


def files_in(folder: Path) -> list[str]:
    """Return the names of the files that may belong to a layout, with their subfolder."""
    places = (folder, *(folder / name for name in ("onnx", "visual", "textual")))
    found = [path for place in places if place.is_dir() for path in place.iterdir() if path.is_file()]
    return sorted(path.relative_to(folder).as_posix() for path in found)


def published_precisions(names: Collection[str]) -> list[str]:
    """Return the precisions in which a model is published."""
    return [precision for precision in SUFFIXES if find_layout(names, precision)]


def choose_files(hub_id: str, names: Collection[str], precision: Precision = "fp32") -> tuple[str, ...]:
    """Return the networks, tokenizer and configurations among the files of a repository."""
    layout = find_layout(names, precision)
    if layout is not None:
        return layout.files
    if published := published_precisions(names):
        raise WeightsError(f"{hub_id} publishes {' and '.join(published)}, not {precision}")
    raise WeightsError(
        f"{hub_id} publishes no ONNX files of a CLIP-like model",
        NextStep("choose a repository that does, or download it and name its folder", "use FOLDER"),
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise WeightsError(f"{path.name} is too large for a configuration")
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsError(f"{path.name} cannot be read: {str(error)[:100]}") from None
    if not isinstance(value, dict):
        raise WeightsError(f"{path.name} holds no configuration")
    return value


def read_transform(folder: Path, layout: Layout) -> ImageTransform:
    """Return how a model's pictures are prepared."""
    values = read_json(folder / layout.preprocessor)
    try:
        return _transform(_like_hub(values) if "resize_mode" in values or "mean" in values else values)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise WeightsError(
            f"{layout.preprocessor} describes pictures in a way that is not known ({error})", UNSUPPORTED
        ) from None


def _like_hub(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return Immich's description in the words of the hub's."""
    size, mode = values["size"], values.get("resize_mode", "shortest")
    if mode not in ("shortest", "squash"):
        raise ValueError(f"resize_mode is {mode!r}")
    if isinstance(size, list):
        size = {"height": size[0], "width": size[-1]}
    side, interpolation = _square(size), values.get("interpolation", "bicubic")
    resample = {name: number for number, name in INTERPOLATIONS.items()}.get(interpolation)
    if resample is None:
        raise ValueError(f"interpolation is {interpolation!r}")
    crops = {"shortest_edge": side} if mode == "shortest" else {"height": side, "width": side}
    return {
        "size": crops, "do_center_crop": mode == "shortest", "crop_size": side, "resample": resample,
        "image_mean": values["mean"], "image_std": values["std"],
    }  # fmt: skip


def _transform(values: Mapping[str, Any]) -> ImageTransform:
    size, crops = values["size"], bool(values.get("do_center_crop"))
    shortest = size.get("shortest_edge") if isinstance(size, dict) else size
    side = int(shortest) if shortest is not None else _square(size)
    if crops and _square(values["crop_size"]) != side:
        raise ValueError("it crops less than the shorter side")
    if shortest is not None and isinstance(size, dict) and not crops:
        raise ValueError("pictures keep their shape")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if values.get("do_normalize", True):
        mean, std = _triple(values["image_mean"]), _triple(values["image_std"])
    if not 0 < side <= 4096 or 0 in std:
        raise ValueError(f"pictures of {side} pixels")
    interpolation = INTERPOLATIONS[values.get("resample", 3)]
    return ImageTransform(side, mean, std, "crop" if crops else "squash", interpolation)


def _square(size: Any) -> int:
    height, width = (int(size["height"]), int(size["width"])) if isinstance(size, dict) else (int(size),) * 2
    if height != width:
        raise ValueError(f"pictures of {width} × {height} pixels")
    return height


def _triple(values: Any) -> Triple:
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def read_family(folder: Path, layout: Layout) -> Family:
    """Return whether a model was trained by a sigmoid, as its configuration tells."""
    values = read_json(folder / layout.config) if layout.config else {}
    sigmoid = "siglip" in str(values.get("model_type", "")) or "init_logit_bias" in values
    return "siglip" if sigmoid else "clip"


def read_text_settings(folder: Path, layout: Layout, fixed: int | None, masked: bool) -> TextSettings:
    """Return how texts become tokens.

    Args:
        folder: The model's folder.
        layout: Its files.
        fixed: The number of tokens that the graph takes; None if it takes any.
        masked: Whether the graph is told which tokens are padding.
    """
    values = read_json(folder / layout.config) if layout.config else {}
    tokens = read_json(folder / layout.tokenizer_config) if layout.tokenizer_config else {}
    own, shared = _object(values, "text_cfg"), _object(values, "text_config")
    lengths = (
        fixed,
        own.get("context_length"),
        shared.get("max_position_embeddings"),
        tokens.get("model_max_length"),
    )
    length = next((n for n in lengths if type(n) is int and 0 < n <= MAX_LENGTH), TextSettings.length)
    pad = tokens.get("pad_token")
    causal = values.get("model_type") == "clip"  # no token sees what is behind it
    return TextSettings(
        length,
        _token_id(folder / layout.tokenizer, pad.get("content") if isinstance(pad, dict) else pad),
        shorter=fixed is None and (masked or causal),
        canonicalize=_object(own, "tokenizer_kwargs").get("clean") == "canonicalize",
    )


def _object(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _token_id(tokenizer: Path, token: Any) -> int:
    """Return the id of the token that pads, or the one that the tokenizer itself pads with."""
    from wordreel.backbones.tokenizer import open_tokenizer

    opened = open_tokenizer(tokenizer.read_text(encoding="utf-8"))
    found = opened.token_to_id(token) if isinstance(token, str) else None
    return int(found if found is not None else (opened.padding or {}).get("pad_id", 0))


def read_head(folder: Path, layout: Layout, dim: int) -> HeadConfig | None:
    """Return the head of a fine-tuned model, whose texts have `dim` numbers."""
    if not layout.head:
        return None
    values = read_json(folder / HEAD_CONFIG)
    try:
        return HeadConfig(dim, int(values["frames"]), float(values["rate"]))
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{HEAD_CONFIG} is damaged: {error!r}") from None
