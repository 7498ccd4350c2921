"""The published models by name: their configurations and sizes, without torch.

Experts, frames and hyper-parameters are those of MSR-VTT unless the name says otherwise. Sizes are stored, so
that a list needs neither torch nor time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import Generic, TypeVar

from wordreel.lab.models.clip.config import (
    Clip2VideoConfig,
    Clip4ClipConfig,
    Head,
    TS2NetConfig,
    VideoTextConfig,
)
from wordreel.lab.models.config import (
    CEConfig,
    ConcatConfig,
    ExpertConfig,
    MMTConfig,
    ModelConfig,
    MoEEConfig,
    TextConfig,
    TransformerConfig,
)

OPENAI = TextConfig("vectors", 768, "vlad", 28, 1, max_tokens=37, source="openai-gpt")
BERT = TextConfig("bert", 768, "cls", network=TransformerConfig(), max_tokens=30, source="wordpiece")


def ce_experts(ocr: int = 43, audio: int = 8, speech: int = 19) -> tuple[ExpertConfig, ...]:
    """CE's nine experts of MSR-VTT in their order, with the clusters of the three that NetVLAD pools."""
    return (
        ExpertConfig("audio", 128, "vlad", audio, max_tokens=29),
        ExpertConfig("face", 512),
        ExpertConfig("i3d.i3d.0", 1024),
        ExpertConfig("imagenet.resnext101_32x48d.0", 2048),
        ExpertConfig("imagenet.senet154.0", 2048),
        ExpertConfig("ocr", 300, "vlad", ocr, max_tokens=49),
        ExpertConfig("r2p1d.r2p1d-ig65m.0", 512),
        ExpertConfig("scene.densenet161.0", 2208),
        ExpertConfig("speech", 300, "vlad", speech, max_tokens=32),
    )


def mmt_experts(*names: str, rows: int = 30) -> tuple[ExpertConfig, ...]:
    """MMT's experts in their order, with the rows of its table of experts."""
    known = {
        "face": (512, 3, False),
        "ocr": (300, 7, False),
        "rgb": (2048, 5, True),
        "s3d": (1024, 1, True),
        "scene": (2208, 9, True),
        "speech": (300, 6, False),
        "vggish": (128, 2, True),
    }
    chosen = {name: known[name] for name in sorted(names or known)}
    return tuple(
        ExpertConfig(name, dim, max_tokens=rows, type_id=row, timed=timed)
        for name, (dim, row, timed) in chosen.items()
    )


def ce(dim: int = 768) -> CEConfig:
    """Return Collaborative Experts on MSR-VTT."""
    return CEConfig(ce_experts(), OPENAI, dim)


def ce_plus() -> CEConfig:
    """CE+ of TeachText: seven experts and the words of a fine-tuned GPT-2 XL."""
    chosen = {"audio", "imagenet.resnext101_32x48d.0", "imagenet.senet154.0", "scene.densenet161.0", "speech"}
    experts = [expert for expert in ce_experts() if expert.name in chosen]
    experts += [ExpertConfig(f"r2p1d.r2p1d-ig65m{more}.0", 512) for more in ("", "-kinetics")]
    text = replace(OPENAI, dim=1600, source="gpt2-xl-finetune")
    return CEConfig(tuple(sorted(experts, key=lambda expert: expert.name)), text)


def moee() -> MoEEConfig:
    """Return MoEE on MSR-VTT, as trained by the CE code."""
    limits = {"audio": 17, "ocr": 3, "speech": 32}
    experts = tuple(
        replace(expert, max_tokens=limits.get(expert.name, 0))
        for expert in ce_experts(ocr=20, audio=27, speech=45)
    )
    return MoEEConfig(experts, replace(OPENAI, clusters=50, ghosts=2, max_tokens=19))


def mmt() -> MMTConfig:
    """Return the Multi-modal Transformer with seven experts."""
    return MMTConfig(mmt_experts(), BERT)


def mmt_long() -> MMTConfig:
    """Return MMT with the two experts of ActivityNet and HowTo100M, 100 seconds and 100 words."""
    return MMTConfig(
        mmt_experts("s3d", "vggish", rows=100), replace(BERT, max_tokens=100), positions=102, types=10
    )


Config = TypeVar("Config")


@dataclass(frozen=True)
class RegisteredModel(Generic[Config]):
    """One published configuration. `released` says whether its authors published checkpoints."""

    title: str
    paper: str
    make: Callable[[], Config]
    released: bool = False


CE_PAPER, MMT_PAPER, MOEE_PAPER = "arXiv 1907.13487", "arXiv 2007.10639", "arXiv 1804.02516"
MODELS: dict[str, RegisteredModel[ModelConfig]] = {
    "ce": RegisteredModel("Collaborative Experts", CE_PAPER, ce, released=True),
    **{
        f"ce-{dim}": RegisteredModel(f"Collaborative Experts, {dim} dimensions", CE_PAPER, partial(ce, dim))
        for dim in (384, 512, 640, 1024)
    },
    "ce-without-gating": RegisteredModel(
        "CE − CG: no collaborative gating", CE_PAPER, lambda: replace(ce(), gating=False)
    ),
    "ce-plain": RegisteredModel(
        "CE − MW,P,CG: no mixture weights, projection or gating",
        CE_PAPER,
        lambda: MoEEConfig(ce_experts(), OPENAI, learned_weights=False),
    ),
    "concat": RegisteredModel(
        "Concatenated experts", CE_PAPER, lambda: ConcatConfig(ce_experts(), replace(OPENAI, clusters=39))
    ),
    "ce-plus": RegisteredModel("CE+ of TeachText", "arXiv 2104.08271", ce_plus, released=True),
    "moee": RegisteredModel("Mixture of Embedding Experts", MOEE_PAPER, moee, released=True),
    "mmt": RegisteredModel("Multi-modal Transformer, 7 experts", MMT_PAPER, mmt, released=True),
    "mmt-coll": RegisteredModel(
        "MMT's experts under collaborative gating", MMT_PAPER, lambda: replace(mmt(), encoder="coll")
    ),
    "mmt-none": RegisteredModel(
        "MMT's experts, pooled only", MMT_PAPER, lambda: replace(mmt(), encoder="none")
    ),
    "mmt-long": RegisteredModel(
        "Multi-modal Transformer, 2 experts, 100 s", MMT_PAPER, mmt_long, released=True
    ),
}


CLIP4CLIP_PAPER, CLIP2VIDEO_PAPER, TS2NET_PAPER = "arXiv 2104.08860", "arXiv 2106.11097", "arXiv 2207.07852"
CLIP4CLIP_TITLES: dict[Head, str] = {
    "mean": "CLIP4Clip, mean of the frames (meanP)",
    "lstm": "CLIP4Clip, LSTM over the frames (seqLSTM)",
    "transformer": "CLIP4Clip, transformer over the frames (seqTransf)",
    "tight": "CLIP4Clip, transformer over caption and frames (tightTransf)",
}

VIDEO_TEXT_MODELS: dict[str, RegisteredModel[VideoTextConfig]] = {
    **{
        f"clip4clip-{head}": RegisteredModel(
            title, CLIP4CLIP_PAPER, partial(Clip4ClipConfig, head=head), released=True
        )
        for head, title in CLIP4CLIP_TITLES.items()
    },
    "clip2video-msrvtt": RegisteredModel(
        "CLIP2Video, 5 centres (MSR-VTT, MSVD)", CLIP2VIDEO_PAPER, Clip2VideoConfig, released=True
    ),
    "clip2video-vatex": RegisteredModel(
        "CLIP2Video, 7 centres (VATEX)",
        CLIP2VIDEO_PAPER,
        partial(Clip2VideoConfig, centres=7, frame_rate=5.0),
        released=True,
    ),
    "ts2net": RegisteredModel("TS2-Net", TS2NET_PAPER, TS2NetConfig, released=True),
    "ts2net-long": RegisteredModel(
        "TS2-Net, 64 frames and words (ActivityNet, DiDeMo)",
        TS2NET_PAPER,
        partial(TS2NetConfig, positions=256, max_frames=64, max_words=64),
    ),
}


@cache
def parameters() -> dict[str, dict[str, int]]:
    """Return the sizes of all "models" and all "recipes", by name.

    >>> parameters()["models"]["ce"]
    183448607
    """
    text = (files("wordreel.lab.models") / "data" / "parameters.json").read_text()
    sizes: dict[str, dict[str, int]] = json.loads(text)
    return sizes
