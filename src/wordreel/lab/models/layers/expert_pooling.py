"""From rows to one vector per expert and video: the first step of MoEE and CE.

NetVLAD is that of Arandjelović et al., 2016, with the ghost clusters of GhostVLAD (Zhong et al., 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from wordreel.lab.models.batch import ExpertFeatures, VideoFeatures, masked_mean, unit
from wordreel.lab.models.config import ExpertConfig
from wordreel.lab.models.layers.norm import BatchNorm
from wordreel.models.laboratory import Mode


class NetVLAD(nn.Module):
    """Gathers rows `x [b, n, D]` into one vector of D·K numbers.

        a = softmax over K + G clusters of BN(x C);   v_dk = Σₜ a_tk (x_td − V_dk)

    The G ghost clusters take their share of a and are dropped without renormalising. Each cluster's residual
    v_·k is normalised, then all of them together; numbers lie in the order d·K + k.
    """

    def __init__(self, dim: int, clusters: int, ghosts: int = 0) -> None:
        super().__init__()
        self.dim, self.clusters_out = dim, clusters
        scale = dim**-0.5
        self.clusters = nn.Parameter(scale * torch.randn(dim, clusters + ghosts))
        self.centres = nn.Parameter(scale * torch.randn(dim, clusters))
        self.norm = BatchNorm(clusters + ghosts)

    @property
    def out(self) -> int:
        return self.dim * self.clusters_out

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Pool the rows.

        With a `mask [b, n]` only real rows count; without, every row does, padding too.
        """
        if mask is not None:
            x = torch.where(mask[:, :, None], x, 0)
        shares = self.norm(x @ self.clusters, mask).softmax(dim=-1)[:, :, : self.clusters_out]
        if mask is not None:
            shares = shares * mask[:, :, None]
        residual = x.transpose(1, 2) @ shares - shares.sum(dim=1)[:, None, :] * self.centres  # [b, D, K]
        return unit(unit(residual.transpose(1, 2)).transpose(1, 2).flatten(1))


class ExpertPooling(nn.Module):
    """Each expert's rows by mean or NetVLAD: a list of `[b, pooled]` in order, and `available [b, m]`.

    Released: zero rows up to `max_tokens` take part in NetVLAD, and a missing expert is a row of zeros.
    """

    def __init__(self, experts: Sequence[ExpertConfig], mode: Mode) -> None:
        super().__init__()
        self.experts, self.released = tuple(experts), mode == "released"
        self.pools = nn.ModuleDict(
            {
                str(number): NetVLAD(expert.dim, expert.clusters, expert.ghosts)
                for number, expert in enumerate(experts)
                if expert.pool == "vlad"
            }
        )

    def forward(self, video: VideoFeatures) -> tuple[list[Tensor], Tensor]:
        full = complete(video, self.experts)
        vectors = [self._pool(number, full[number]) for number in range(len(full))]
        return vectors, torch.stack([features.available for features in full], dim=1)

    def _pool(self, number: int, features: ExpertFeatures) -> Tensor:
        expert = self.experts[number]
        if expert.pool != "vlad":
            return masked_mean(features.values, features.mask)
        if not self.released:
            pooled: Tensor = self.pools[str(number)](features.values, features.mask)
            return pooled
        values = torch.where(features.mask[:, :, None], features.values, 0)
        missing = max(0, expert.max_tokens - values.shape[1])
        padded: Tensor = self.pools[str(number)](pad(values, (0, 0, 0, missing)))
        return padded


def complete(video: VideoFeatures, experts: Sequence[ExpertConfig]) -> list[ExpertFeatures]:
    """Return features in the experts' order, cut to `max_tokens`.

    Experts that were not given have no real row.
    """
    given = [video[expert.name] for expert in experts if expert.name in video]
    if not given:
        names = ", ".join(expert.name for expert in experts)
        raise ValueError(f"a batch needs at least one of the model's experts: {names}")
    like = given[0]
    full = []
    for expert in experts:
        features = video.get(expert.name)
        if features is None:
            values = like.values.new_zeros(like.values.shape[0], 1, expert.dim)
            features = ExpertFeatures(
                values, torch.zeros(values.shape[:2], dtype=torch.bool, device=values.device)
            )
        if features.values.shape[-1] != expert.dim:
            dim = features.values.shape[-1]
            raise ValueError(
                f"expert {expert.name!r} has rows of {dim} numbers; the model wants {expert.dim}"
            )
        full.append(cut(features, expert.max_tokens))
    return full


def cut(features: ExpertFeatures, most: int) -> ExpertFeatures:
    """Return the first rows of each video, at most so many; 0 is no limit."""
    if not most or features.values.shape[1] <= most:
        return features
    times = None if features.times is None else features.times[:, :most]
    return ExpertFeatures(features.values[:, :most], features.mask[:, :most], times, features.pooled)
