"""The multi-modal transformer's input: which token stands where, of which expert, at which second."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wordreel.lab.models.batch import ExpertFeatures
from wordreel.lab.models.config import MMTConfig

AGGREGATE, UNKNOWN, FIRST = 0, 1, 2  # rows of the table of times; FIRST is the video's first second


class VideoTokens(NamedTuple):
    """[CLS if released], then for each expert its aggregate token and its rows."""

    features: Tensor  # [b, n, d]
    types: tuple[tuple[int, int], ...]  # (row of the table of experts, how many tokens), in order
    position_ids: Tensor  # [b, n] rows of the table of times
    mask: Tensor  # [b, n] bool
    answers: tuple[int, ...]  # where the experts' aggregate tokens stand

    @staticmethod
    def assemble(
        config: MMTConfig,
        features: list[ExpertFeatures],
        rows: list[Tensor] | None,
        aggregates: Tensor,
        present: Tensor,
        training: bool,
    ) -> VideoTokens:
        """`rows` are the projected rows by expert (None: aggregates only), `aggregates [b, experts, d]`."""
        batch, _, dim = aggregates.shape
        device = aggregates.device
        one = torch.zeros(batch, 1, dtype=torch.long, device=device)
        parts, position_ids, masks = [], [], []
        types: list[tuple[int, int]] = []
        answers: list[int] = []
        count = 0
        if config.mode == "released":
            parts.append(aggregates.new_zeros(batch, 1, dim))
            position_ids.append(one)
            masks.append(torch.ones_like(one, dtype=torch.bool))
            types.append((0, 1))
            count = 1
        for number, expert in enumerate(config.experts):
            answers.append(count)
            parts.append(aggregates[:, number, None])
            position_ids.append(one)
            masks.append(present[:, number, None])
            count += 1
            if rows is not None:
                seconds = time_positions(features[number], config.positions, expert.timed)
                if config.inputs == "shuffled":
                    seconds = shuffled(seconds, features[number].mask, training)
                parts.append(rows[number])
                position_ids.append(seconds)
                masks.append(features[number].mask)
                count += rows[number].shape[1]
            types.append((expert.type_id, count - answers[-1]))
        return VideoTokens(
            torch.cat(parts, dim=1),
            tuple(types),
            torch.cat(position_ids, dim=1),
            torch.cat(masks, dim=1),
            tuple(answers),
        )


def time_positions(features: ExpertFeatures, positions: int, timed: bool = True) -> Tensor:
    """`[b, n]`: row 2 + ⌊t⌋ of the table of times, its last row at most; 1 for unknown times and padding.

    >>> rows, mask = torch.zeros(1, 3, 1), torch.tensor([[True, True, False]])
    >>> time_positions(ExpertFeatures(rows, mask, torch.tensor([[7.4, torch.nan, 0.5]])), 32)
    tensor([[9, 1, 1]])
    """
    if features.times is None or not timed:
        return torch.full_like(features.mask, UNKNOWN, dtype=torch.long)
    known = features.mask & torch.isfinite(features.times)
    seconds = torch.where(known, features.times, 0).clamp(0, positions - 1 - FIRST).long() + FIRST
    return torch.where(known, seconds, UNKNOWN)


def shuffled(position_ids: Tensor, mask: Tensor, training: bool) -> Tensor:
    """Times swapped among an expert's real rows: at random in training, always the same otherwise."""
    batch, count = position_ids.shape
    if training:
        keys = torch.rand(batch, count, device=position_ids.device)
    else:
        # Fixed numbers that jump about: the fractional parts of multiples of the golden ratio.
        steps = torch.arange(1, count + 1, device=position_ids.device, dtype=torch.float64)
        keys = (steps * 0.6180339887498949 % 1.0).float().expand(batch, count)
    order = keys.masked_fill(~mask, 2.0).argsort(dim=1, stable=True)  # real rows first, in random order
    ranks = torch.where(mask, 0.0, 1.0).argsort(dim=1, stable=True)  # real rows first, in their own order
    return torch.zeros_like(position_ids).scatter(1, ranks, position_ids.gather(1, order))
