"""What all models of one training share, on the device: tokens on one scale, and the captions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wordreel.models.reel.shape import SEEN
from wordreel.models.reel.stretches import rooted, scaled
from wordreel.training.reel.captions import Captions
from wordreel.training.reel.material import SPLITS, Material
from wordreel.types import Float32


@dataclass(frozen=True, eq=False)
class Ready:
    """`tokens[expert] [items, most, dim]`, of which some are `there [items, most]`; `plain [texts, 384]`."""

    material: Material
    device: torch.device
    scale: dict[str, Float32]  # mean and deviation of the training items' rows
    tokens: dict[str, Tensor]
    there: dict[str, Tensor]
    captions: Captions
    plain: Tensor  # the captions by the sentence encoder, before any training

    @staticmethod
    def of(material: Material, captions: Captions, device: torch.device) -> Ready:
        train = material.split == SPLITS.index("train")
        scale: dict[str, Float32] = {}
        tokens: dict[str, Tensor] = {}
        there: dict[str, Tensor] = {}
        for seen in SEEN:
            rows, counts = material.tokens[seen.name], material.counts[seen.name]
            kept = np.arange(seen.most) < counts[:, None]
            known = rooted(rows[train][kept[train]])
            known = known if len(known) else np.zeros((1, seen.dim), np.float32)
            mean, deviation = known.mean(axis=0), known.std(axis=0) + 1e-3
            # What ships is rounded; training sees the same numbers.
            mean, deviation = (x.astype(np.float16).astype(np.float32) for x in (mean, deviation))
            scale |= {f"{seen.name}.mean": mean, f"{seen.name}.deviation": deviation}
            made = np.where(kept[:, :, None], scaled(rows, mean, deviation), np.float32(0))
            tokens[seen.name] = torch.from_numpy(made).to(device)
            there[seen.name] = torch.from_numpy(kept).to(device)
        held = captions.to(device)
        return Ready(material, device, scale, tokens, there, held, held.sentences(held.network))
