"""Build the two towers of a joint picture-text model as ONNX graphs, after every weight has been checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.fastvit import VARIANTS, FastViT
from wordreel.backbones.frame_head import HEAD
from wordreel.backbones.text import TextTransformer
from wordreel.backbones.text_alignment import TextAlignment
from wordreel.backbones.vision import VisionTransformer
from wordreel.runtime.nets.checkpoint import Array, check
from wordreel.runtime.nets.net_builder import NetworkDefinition, Shape, build_onnx, weight_shapes
from wordreel.runtime.sessions import Precision

TOWERS = ("image", "text")
UNUSED = (
    "logit_scale",
    "logit_bias",
    "text_model.embeddings.position_ids",
    "vision_model.embeddings.position_ids",
)


def networks(config: BackboneConfig) -> tuple[NetworkDefinition, NetworkDefinition]:
    """The image tower and the text tower."""
    vision, head, alignment = config.vision, config.head, None
    if head is not None and head.kind == "clip2video":
        alignment = TextAlignment(head.centres, head.global_weight)
    image: NetworkDefinition = VisionTransformer(vision, config.dim)
    if vision.kind == "fastvit":
        image = FastViT(VARIANTS[vision.variant], vision.size, config.dim)
    return image, TextTransformer(config.text, config.dim, alignment)


def tower_shapes(config: BackboneConfig) -> dict[str, Shape]:
    """The key and shape of every weight of both towers.

    >>> tower_shapes(BackboneConfig("clip-vit-b-32"))["text_projection.weight"]
    (512, 512)
    """
    image, text = networks(config)
    return weight_shapes(image)[0] | weight_shapes(text)[0]


def check_state(config: BackboneConfig, state: Mapping[str, Array]) -> None:
    """Raise for the first weight that is missing, of another shape, or not the model's."""
    expected = f"the {config.family} model its configuration describes"
    unused = UNUSED if config.head is None else (*UNUSED, HEAD)
    check(state, tower_shapes(config), {}, ignore=unused, given=config.name, expected=expected)


def build_towers(
    config: BackboneConfig,
    state: Mapping[str, Array],
    folder: Path | None = None,
    precision: Precision = "fp32",
) -> tuple[Any, Any]:
    """The image model, `frames [n, 3, size, size]`, and the text model, `ids [n, length]` int64.

    Both give `features [n, dim]`, not normalised. With `folder`, weights go to `image.weights` and
    `text.weights` there as they are read, so that one tensor at a time is in memory and towers may exceed
    2 GiB; save the models in the same folder. `state` is named as `read_backbone` names it.
    """
    check_state(config, state)
    image, text = (
        build_onnx(name, network, state, None if folder is None else folder / f"{name}.weights", precision)
        for name, network in zip(TOWERS, networks(config), strict=True)
    )
    return image, text


def write_towers(
    config: BackboneConfig, state: Mapping[str, Array], folder: Path, precision: Precision = "fp32"
) -> None:
    """Write `image.onnx` and `text.onnx`, with their weights in `image.weights` and `text.weights`."""
    import onnx

    for name, model in zip(TOWERS, build_towers(config, state, folder, precision), strict=True):
        onnx.save(model, str(folder / f"{name}.onnx"))
        onnx.checker.check_model(str(folder / f"{name}.onnx"))
