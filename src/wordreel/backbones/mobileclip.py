"""MobileCLIP and MobileCLIP 2 (Vasu et al. 2024, Faghri et al. 2025): their layouts and configurations.

Apple's own files and open_clip's name the same weights differently. Both become: the image tower below
`visual.trunk` with timm's names and fused branches (S0 to S4) or as a vision transformer of `transformers`
(B), and the text tower as in `transformers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import isqrt

import numpy as np

from wordreel.backbones.config import BackboneConfig, ImageTransform, TokenizerConfig, VisionTowerConfig
from wordreel.backbones.fastvit import AT as TRUNK
from wordreel.backbones.fastvit import VARIANTS
from wordreel.backbones.infer_config import infer_text
from wordreel.backbones.layouts import to_huggingface
from wordreel.backbones.reparameterise import reparameterise
from wordreel.backbones.vision import STEM
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.nets.checkpoint import COUNTER, WRAPPER, Array
from wordreel.runtime.torch_files.lazy_state import LazyState

State = Mapping[str, Array]
Renames = tuple[tuple[str, str], ...]
IMAGE, TEXT = "image_encoder.model.", "text_encoder."
MIXERS = "text_model.mixers"  # before and behind the transformer of S0's text tower
HEAD_WIDTH = 64
SIZE, PATCH = 256, 16

BRANCHES: Renames = (
    ("rbr_conv", "conv_kxk"),
    ("rbr_scale", "conv_scale"),
    ("rbr_skip", "identity"),
    ("lkb_origin", "large_conv"),
    ("lkb_reparam", "reparam_conv"),
    ("convffn", "mlp"),
    ("se.reduce", "se.fc1"),
    ("se.expand", "se.fc2"),
)
BLOCK: Renames = (
    ("pre_norm_mha.0", "norm1"),
    ("pre_norm_mha.1.qkv_proj", "attn.qkv"),
    ("pre_norm_mha.1.out_proj", "attn.proj"),
    ("pre_norm_ffn.0", "norm2"),
    ("pre_norm_ffn.1", "mlp.fc1"),
    ("pre_norm_ffn.4", "mlp.fc2"),
)
TEXT_BLOCK: Renames = (
    ("pre_norm_mha.0", "ln_1"),
    ("pre_norm_mha.1.qkv_proj.", "attn.in_proj_"),
    ("pre_norm_mha.1.out_proj", "attn.out_proj"),
    ("pre_norm_ffn.0", "ln_2"),
    ("pre_norm_ffn.1", "mlp.c_fc"),
    ("pre_norm_ffn.4", "mlp.c_proj"),
)


def is_mobileclip(keys: Iterable[str]) -> bool:
    """Whether these are the names of a MobileCLIP in Apple's layout or in open_clip's.

    >>> is_mobileclip(["visual.trunk.stem.0.reparam_conv.weight"]), is_mobileclip(["visual.conv1.weight"])
    (True, False)
    """
    own = (IMAGE, f"{TRUNK}.stem.", f"{STEM}.")
    return any(key.removeprefix(WRAPPER).startswith(own) for key in keys)


def to_towers(state: State) -> State:
    """The weights by the names that the towers use, from either layout, with train-time branches fused."""
    state = LazyState(
        {key.removeprefix(WRAPPER): _read(state, key) for key in state if not key.endswith(COUNTER)}
    )
    if any(key.startswith(IMAGE) for key in state):
        state = _from_apple(state)
    convolutional = any(key.startswith(f"{TRUNK}.stem.") for key in state)
    own = {
        key: state[key] for key in state if key.startswith((f"{TRUNK}." if convolutional else STEM, MIXERS))
    }
    rest = to_huggingface(LazyState({key: _read(state, key) for key in state if key not in own}))
    fused = reparameterise(own)
    return LazyState({key: _read(rest, key) for key in rest} | {key: _read(fused, key) for key in fused})


def infer_mobileclip(name: str, state: State) -> BackboneConfig:
    """The configuration that the weights fit, named as `to_towers` names them, with the usual transform."""
    vision = infer_image_tower(name, state)
    text = infer_text(
        name,
        state,
        activation="gelu",
        epsilon=1e-5,
        causal=vision.convolutional_stem,  # only B's text tower is
    )
    return BackboneConfig(
        name=name,
        family="mobileclip",
        dim=_rows(name, state, "text_projection.weight", axis=0),
        vision=vision,
        text=text,
        transform=usual_transform(vision),
        tokenizer=TokenizerConfig(kind="clip", length=text.length),
    )


def usual_transform(vision: VisionTowerConfig) -> ImageTransform:
    """How pictures are prepared: only the large towers of MobileCLIP 2 normalise them, as CLIP does."""
    if vision.variant in ("mci3", "mci4"):
        return ImageTransform(vision.size, interpolation="bilinear")
    return ImageTransform(vision.size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), interpolation="bilinear")


def timm_name(vision: VisionTowerConfig) -> str:
    """timm's name for the image tower."""
    return "vit_base_mci_224" if vision.convolutional_stem else f"fastvit_{vision.variant}"


def infer_image_tower(name: str, state: State) -> VisionTowerConfig:
    """A published FastViT, or the transformer behind convolutions of B."""
    if f"{STEM}.0.conv.weight" not in state:
        variant = _variant(name, state)
        width = VARIANTS[variant].widths()[-1]
        return VisionTowerConfig(kind="fastvit", size=SIZE, patch=32, width=width, variant=variant)
    width = _rows(name, state, f"{STEM}.2.conv.weight", axis=0)
    patches = _rows(name, state, "vision_model.embeddings.position_embedding.weight", axis=0)
    bias = "visual_projection.bias" in state
    return VisionTowerConfig(
        size=PATCH * isqrt(patches),
        patch=PATCH,
        width=width,
        depth=len({key.split(".")[3] for key in state if key.startswith("vision_model.encoder.layers.")}),
        heads=width // HEAD_WIDTH,
        mlp=4 * width,
        activation="gelu",
        epsilon=1e-6 if bias else 1e-5,  # timm's, whose head has a bias, and Apple's
        convolutional_stem=True,
        pre_norm=False,
        projection_bias=bias,
    )


def _variant(name: str, state: State) -> str:
    depths: dict[int, set[str]] = {}
    for key in state:
        if match := re.match(rf"{TRUNK}\.stages\.(\d+)\.blocks\.(\d+)\.", key):
            depths.setdefault(int(match[1]), set()).add(match[2])
    shape = tuple(len(depths[stage]) for stage in sorted(depths))
    width = _rows(name, state, f"{TRUNK}.stem.0.reparam_conv.weight", axis=0)
    for variant, published in VARIANTS.items():
        if (published.depths, published.width) == (shape, width):
            return variant
    raise WeightsError(
        f"{name} has a FastViT of the width {width} and the depths {shape}, unlike any MobileCLIP",
        NextStep("use a published MobileCLIP or MobileCLIP 2 checkpoint"),
    )


def _rows(name: str, state: State, key: str, *, axis: int) -> int:
    if key not in state or state[key].ndim <= axis:
        raise WeightsError(
            f"{name} is not a whole MobileCLIP: it has no {key}", NextStep("download the whole model")
        )
    return int(state[key].shape[axis])


def _from_apple(state: State) -> State:
    """Apple's names to open_clip's; parts of the training go away."""
    readers: dict[str, Callable[[], Array]] = {}
    downsamples = {int(m[1]) for key in state if (m := re.match(rf"{IMAGE}network\.(\d+)\.proj\.", key))}
    layers = sorted({int(m[1]) for key in state if (m := re.match(rf"{TEXT}transformer\.(\d+)\.", key))})
    mixed = f"{TEXT}transformer.0.layer_scale" in state
    for key in state:
        if key.startswith(IMAGE):
            name, change = _image_name(key.removeprefix(IMAGE), downsamples)
        elif key.startswith(TEXT):
            name, change = _text_name(key.removeprefix(TEXT), layers[-1] if mixed else None)
        else:
            name, change = key, None
        readers[name] = _read(state, key, change)
    head = f"{TRUNK}.head.fc.weight"
    if head in readers:  # Apple's has no bias
        readers[f"{TRUNK}.head.fc.bias"] = lambda: np.zeros(len(readers[head]()), np.float32)
    return LazyState(readers)


def _image_name(name: str, downsamples: set[int]) -> tuple[str, Callable[[Array], Array] | None]:
    if name in ("head.proj", "classifier.proj"):
        return f"{TRUNK}.head.fc.weight" if name == "head.proj" else f"{TRUNK}.head.weight", np.transpose
    if name == "pos_embed.pos_embed.pos_embed":
        return f"{TRUNK}.pos_embed", lambda x: x[0]
    if match := re.match(r"network\.(\d+)\.(proj\.|pe\.|reparam_conv\.)?", name):
        number, rest = int(match[1]), name[match.end() :]
        stage = sum(index <= number for index in downsamples)
        part = {"proj.": "downsample.proj", "pe.": "pos_emb.pos_enc", "reparam_conv.": "pos_emb.reparam_conv"}
        return f"{TRUNK}.stages.{stage}.{part.get(match[2], 'blocks')}.{_branch_name(rest)}", None
    name = re.sub(r"^patch_embed\.", "stem.", name)
    name = re.sub(r"^patch_emb\.(\d)\.block\.", r"patch_embed.backbone.\1.", name)
    name = re.sub(r"^(patch_embed\.backbone\.\d)\.norm\.", r"\1.bn.", name)
    name = re.sub(r"^post_transformer_norm\.", "norm.", name)
    name = re.sub(r"^conv_exp\.", "final_conv.", name)
    name = re.sub(r"^transformer\.", "blocks.", name)
    return f"{TRUNK}.{_branch_name(_renamed(name, BLOCK))}", None


def _text_name(name: str, last: int | None) -> tuple[str, Callable[[Array], Array] | None]:
    """`last` is the number of the mixer behind the blocks, where there are mixers."""
    if name == "positional_embedding.pos_embed.pos_embed":
        return "text.positional_embedding", lambda x: x[0, 0]
    if match := re.match(r"transformer\.(\d+)\.", name):
        number, rest = int(match[1]), name[match.end() :]
        if last is not None and number in (0, last):
            return f"{MIXERS}.{int(number > 0)}.{_branch_name(rest)}", None
        number -= last is not None
        return f"text.transformer.resblocks.{number}.{_renamed(rest, TEXT_BLOCK)}", None
    table = {
        "embedding_layer.weight": "token_embedding.weight",
        "projection_layer": "text_projection",
        "final_layer_norm.weight": "ln_final.weight",
        "final_layer_norm.bias": "ln_final.bias",
    }
    return f"text.{table.get(name, name)}", None


def _branch_name(name: str) -> str:
    """timm's name for a part of a block."""
    return re.sub(r"(layer_scale(?:_\d)?)$", r"\1.gamma", _renamed(name, BRANCHES))


def _renamed(name: str, renames: Renames) -> str:
    for old, new in renames:
        name = name.replace(old, new)
    return name


def _read(state: State, key: str, change: Callable[[Array], Array] | None = None) -> Callable[[], Array]:
    return (lambda: state[key]) if change is None else (lambda: change(state[key]))
