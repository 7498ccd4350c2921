"""The configurations of video-text models and of the towers they train, as frozen data without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from wordreel.backbones.config import ImageTransform
from wordreel.errors import NextStep, WeightsError
from wordreel.models.laboratory import Mode

Activation = Literal["quick_gelu", "gelu", "gelu_tanh"]
Data = TypeVar("Data")


@dataclass(frozen=True)
class VisionTowerConfig:
    """A vision transformer whose class token becomes the picture's embedding."""

    size: int = 224
    patch: int = 32
    width: int = 768
    depth: int = 12
    heads: int = 12
    mlp: int = 3072
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class TextTowerConfig:
    """A causal transformer whose first end-of-text token, the largest id, becomes the text's embedding."""

    vocabulary: int = 49408
    length: int = 77
    width: int = 512
    depth: int = 12
    heads: int = 8
    mlp: int = 2048
    activation: Activation = "quick_gelu"
    epsilon: float = 1e-5


@dataclass(frozen=True)
class ClipConfig:
    """A CLIP with a vision transformer (Radford et al. 2021), without its weights.

    >>> ClipConfig.from_json({"name": "clip-vit-b-32", "vision": {"patch": 32}}).vision.patch
    32
    """

    name: str
    dim: int = 512
    vision: VisionTowerConfig = VisionTowerConfig()
    text: TextTowerConfig = TextTowerConfig()
    transform: ImageTransform = field(default_factory=ImageTransform)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ClipConfig:
        """Return the configuration in plain values; what other versions wrote beside it is ignored."""
        transform = dict(values.get("transform", {}))
        transform |= {key: tuple(transform[key]) for key in ("mean", "std") if key in transform}
        return cls(
            values["name"],
            values.get("dim", cls.dim),
            _known(VisionTowerConfig, values.get("vision", {})),
            _known(TextTowerConfig, values.get("text", {})),
            _known(ImageTransform, transform),
        )


def _known(kind: type[Data], values: Mapping[str, Any]) -> Data:
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in values.items() if key in names})


Head = Literal["mean", "lstm", "transformer", "tight"]
Clip4ClipMode = Literal["paper", "released", "released-2021"]

VIT_B_32 = ClipConfig("clip-vit-b-32")
VIT_B_16 = ClipConfig("clip-vit-b-16", vision=VisionTowerConfig(patch=16))


def small_clip(
    name: str = "clip-small",
    size: int = 112,
    patch: int = 16,
    width: int = 256,
    depth: int = 6,
    dim: int = 256,
    vocabulary: int = 49408,
    length: int = 32,
) -> ClipConfig:
    """Return a CLIP to train from scratch: heads of 64 numbers, both towers of one width and depth.

    >>> small_clip().vision.heads
    4
    """
    heads = max(1, width // 64)
    return ClipConfig(
        name,
        dim=dim,
        vision=VisionTowerConfig(
            size=size, patch=patch, width=width, depth=depth, heads=heads, mlp=4 * width
        ),
        text=TextTowerConfig(vocabulary, length, width, depth, heads, 4 * width),
        transform=ImageTransform(size=size),
    )


@dataclass(frozen=True)
class Clip4ClipConfig:
    """CLIP4Clip (arXiv 2104.08860): a CLIP, and a head over the embeddings of a video's frames.

    `patch` "3d" projects patches of three neighbouring frames. The heads "transformer" and "tight" have
    `layers` blocks of the text tower's size. `max_frames`, taken at `frame_rate` a second, and `max_words`
    (with both end tokens) are what it is trained and used with. Modes "paper" and "released" compute the
    same. In "released-2021" head h of video i gets the frame mask of video (i · heads + h) mod b, as in
    the published code of April to July 2021, which probably made the paper's figures: videos with fewer
    frames than others in their batch get other embeddings.
    """

    backbone: ClipConfig = VIT_B_32
    head: Head = "mean"
    patch: Literal["2d", "3d"] = "2d"
    layers: int = 4
    dropout: float = 0.1  # of the tight head's inputs
    max_frames: int = 12
    frame_rate: float = 1.0
    max_words: int = 32
    mode: Clip4ClipMode = "paper"
    kind: Literal["clip4clip"] = "clip4clip"

    def __post_init__(self) -> None:
        room = self.backbone.text.length - (1 if self.head == "tight" else 0)
        _check_lengths(self, max(1, self.max_frames) if self.head == "mean" else room)
        if self.head in ("transformer", "tight") and self.layers < 1:
            raise ValueError(f"the {self.head} head needs at least one layer")


@dataclass(frozen=True)
class Clip2VideoConfig:
    """CLIP2Video (arXiv 2106.11097): temporal differences among the frames, and shared centres.

    `difference` is what the differences of frames go through, `layers` the blocks over frames and
    differences, `centres` those that captions and videos share (5; 7 for VATEX), `global_weight` the share of
    the global similarity in the logits and in the loss. Frames are every second one of 5 a second
    (`feature_framerate` 2 of MSR-VTT); MSVD and VATEX take all 5. In mode "released" the difference
    between the last real frame and the padding counts as real, and attention mixes up the masks of a batch,
    as in the published code.
    """

    backbone: ClipConfig = VIT_B_32
    difference: Literal["attention", "mlp"] = "attention"
    layers: int = 4
    centres: int = 5
    global_weight: float = 0.5
    max_frames: int = 12
    frame_rate: float = 2.5
    max_words: int = 32
    mode: Mode = "paper"
    kind: Literal["clip2video"] = "clip2video"

    def __post_init__(self) -> None:
        _check_lengths(self, self.backbone.text.length)
        if self.layers < 1 or self.centres < 1 or not 0 <= self.global_weight <= 1:
            raise ValueError("CLIP2Video needs a layer, a centre and a global weight between 0 and 1")


@dataclass(frozen=True)
class TS2NetConfig:
    """TS2-Net (arXiv 2207.07852): tokens shifted between frames, and the most telling patches of each.

    The last `shifted` blocks of the image tower shift; `patches` join the class token of each frame, chosen
    with `samples` of noise of size `sigma`; all tokens of a video need a row in the table of `positions`.
    Mode "released" does as the published code: a frame mask that is tiled instead of repeated for the tokens
    of each frame, noise in evaluation too, the diagonal of the top-k's gradient, and padding as a neighbour
    of the last frame. `mask`, `noisy` and `gradient` choose one of these against the mode.
    """

    backbone: ClipConfig = VIT_B_32
    layers: int = 4
    shifted: int = 2
    patches: int = 3
    samples: int = 500
    sigma: float = 0.05
    positions: int = 77
    max_frames: int = 12
    frame_rate: float = 1.0
    max_words: int = 32
    mode: Mode = "paper"
    mask: Literal["repeated", "tiled"] | None = None
    noisy: bool | None = None
    gradient: Literal["full", "diagonal"] | None = None
    kind: Literal["ts2net"] = "ts2net"

    def __post_init__(self) -> None:
        vision = self.backbone.vision
        tokens = 1 + self.patches
        _check_lengths(self, self.positions // tokens)
        if not 0 <= self.shifted <= vision.depth:
            raise ValueError(
                f"shifted is at most {vision.depth}, the image tower's blocks, not {self.shifted}"
            )
        if not 0 < self.patches <= (vision.size // vision.patch) ** 2:
            raise ValueError(f"{self.patches} patches cannot be chosen from each frame")
        if self.layers < 1 or self.samples < 1 or self.sigma <= 0:
            raise ValueError("TS2-Net needs a layer, a sample and a sigma above 0")

    @property
    def shifted_blocks(self) -> range:
        """The numbers of the blocks that shift, from 0."""
        depth = self.backbone.vision.depth
        return range(depth - self.shifted, depth)

    @property
    def tiled_mask(self) -> bool:
        return (self.mask or ("tiled" if self.mode == "released" else "repeated")) == "tiled"

    @property
    def noisy_inference(self) -> bool:
        return self.mode == "released" if self.noisy is None else self.noisy

    @property
    def topk_gradient(self) -> Literal["full", "diagonal"]:
        return self.gradient or ("diagonal" if self.mode == "released" else "full")


VideoTextConfig = Clip4ClipConfig | Clip2VideoConfig | TS2NetConfig
KINDS: dict[str, type[VideoTextConfig]] = {
    model.kind: model for model in (Clip4ClipConfig, Clip2VideoConfig, TS2NetConfig)
}


def _check_lengths(config: VideoTextConfig, frames: int) -> None:
    """Raise unless captions fit into the text tower and videos into the table of positions."""
    words = config.backbone.text.length
    if not config.frame_rate > 0:
        raise ValueError(f"frame_rate is above 0, not {config.frame_rate:g}")
    if not 0 < config.max_words <= words:
        raise ValueError(f"max_words is at most {words}, the text tower's length, not {config.max_words}")
    if not 0 < config.max_frames <= frames:
        raise ValueError(f"max_frames is at least 1 and at most {frames}, not {config.max_frames}")


def searchable(config: VideoTextConfig) -> bool:
    """Return whether search can run the model.

    It can if a video has an embedding of its own, made of its frames' embeddings.

    >>> searchable(Clip4ClipConfig(head="lstm")), searchable(TS2NetConfig())
    (True, False)
    """
    if isinstance(config, Clip4ClipConfig):
        return config.head != "tight" and config.patch == "2d"
    return not isinstance(config, TS2NetConfig)


def from_json(value: Mapping[str, Any]) -> VideoTextConfig:
    """Return a configuration from its plain values.

    >>> from dataclasses import asdict
    >>> from_json(asdict(Clip4ClipConfig(head="lstm"))) == Clip4ClipConfig(head="lstm")
    True
    """
    try:
        backbone = {"backbone": ClipConfig.from_json(value["backbone"])} if "backbone" in value else {}
        return KINDS[value["kind"]](**{**value, **backbone})
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(
            f"the model's description cannot be read ({error}); it may be of a newer wordreel",
            NextStep("update wordreel, or train the model again"),
        ) from None
