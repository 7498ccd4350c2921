"""What a joint picture-text model is made of: two towers, a tokenizer and a picture transform.

Every published layout is read into one `BackboneConfig`, which is stored beside the converted towers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Family = Literal["clip", "siglip", "siglip2", "mobileclip", "pe-core"]
Activation = Literal["quick_gelu", "gelu", "gelu_tanh"]
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class VisionTowerConfig:
    """The image tower: a vision transformer, or a FastViT of MobileCLIP named by `variant`.

    `pooling` is what becomes the picture's embedding: the class token, or a learnt query that attends
    over the tokens. `projection` is whether a matrix leads into the joint space.
    """

    kind: Literal["vit", "fastvit"] = "vit"
    size: int = 224
    patch: int = 32
    width: int = 768
    depth: int = 12
    heads: int = 12
    mlp: int = 3072
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5
    class_token: bool = True
    patch_bias: bool = False
    pre_norm: bool = True  # a layer norm before the first block
    pooling: Literal["class", "attention"] = "class"
    pool_heads: int = 0  # of the attention pooling; 0: as in the blocks
    pool_mlp: int = 0
    projection: bool = True
    projection_bias: bool = False
    rotary: bool = False  # 2-D rotary positions in every block (PE-Core)
    # Patches come from three convolutions, and the class token has no position (MobileCLIP-B).
    convolutional_stem: bool = False
    variant: str = ""


@dataclass(frozen=True)
class TextTowerConfig:
    """The text tower: a transformer whose `pooling` token becomes the text's embedding.

    "end" is the first end-of-text token, "last" the last position. `end_token` is the id of the end-of-text
    token; −1 is the largest id of each text, which is the same in CLIP's own vocabulary.
    """

    vocabulary: int = 49408
    length: int = 77
    width: int = 512
    depth: int = 12
    heads: int = 8
    mlp: int = 2048
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5
    causal: bool = True
    pooling: Literal["end", "last"] = "end"
    end_token: int = -1
    projection_bias: bool = False
    mixers: bool = False  # a convolution over the tokens before and behind the blocks (MobileCLIP-S0)


@dataclass(frozen=True)
class ImageTransform:
    """Pixels to the tower's input: resize, crop, `(value / 255 − mean) / std`.

    "crop" resizes the shorter side and crops the centre; "squash" resizes both sides to the square.
    """

    size: int = 224
    mean: Triple = (0.48145466, 0.4578275, 0.40821073)
    std: Triple = (0.26862954, 0.26130258, 0.27577711)
    resize: Literal["crop", "squash"] = "crop"
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"


@dataclass(frozen=True)
class TokenizerConfig:
    """How text becomes token ids: CLIP's byte-pair encoding, or a `tokenizer.json` of SentencePiece kind.

    `cleaning` is what CLIP's own code (and open_clip) does to text before, or what `transformers` does.
    """

    kind: Literal["clip", "siglip", "siglip2"] = "clip"
    length: int = 77
    padding: int = 0
    cleaning: Literal["openai", "huggingface"] = "openai"


@dataclass(frozen=True)
class FrameHeadConfig:
    """How a fine-tuned model (CLIP4Clip, CLIP2Video) makes one vector of a clip's frames, at most `frames`,
    which are taken at `rate` a second.

    `layers` and `heads` are the transformer's. CLIP2Video's vectors, of texts too, are its two end to end;
    `global_weight` is the share of the first in their inner product, `centres` what the second is made of.
    """

    kind: Literal["mean", "lstm", "transformer", "clip2video"] = "mean"
    frames: int = 12
    layers: int = 4
    heads: int = 8
    global_weight: float = 0.5
    centres: int = 0
    rate: float = 1.0


@dataclass(frozen=True)
class BackboneConfig:
    """A joint picture-text model without its weights. Without a `head`, a clip is the mean of all its frames.

    >>> BackboneConfig.from_json(BackboneConfig(name="clip-vit-b-32").to_json()).vision.patch
    32
    """

    name: str
    family: Family = "clip"
    dim: int = 512
    vision: VisionTowerConfig = VisionTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    transform: ImageTransform = ImageTransform()
    tokenizer: TokenizerConfig = TokenizerConfig()
    logit_scale: float = 100.0  # exp of the learnt one: logits are scale · cosine + bias
    logit_bias: float = 0.0
    head: FrameHeadConfig | None = None

    @property
    def vector_dim(self) -> int:
        """How long the vectors of clips and texts are; a frame's has `dim` numbers."""
        return 2 * self.dim if self.head is not None and self.head.kind == "clip2video" else self.dim

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> BackboneConfig:
        """The configuration that `to_json` wrote."""
        transform = dict(values["transform"])
        transform |= {key: tuple(transform[key]) for key in ("mean", "std")}
        parts = {
            "vision": VisionTowerConfig(**values["vision"]),
            "text": TextTowerConfig(**values["text"]),
            "transform": ImageTransform(**transform),
            "tokenizer": TokenizerConfig(**values["tokenizer"]),
            "head": None if values.get("head") is None else FrameHeadConfig(**values["head"]),
        }
        return cls(**{**values, **parts})
