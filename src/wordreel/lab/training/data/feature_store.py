"""A dataset's features as tensors that batches are gathered from by number: no copies, workers or padding.

Rows of all videos lie end to end. A batch is one `index_select` per expert; on a GPU that holds the store
nothing travels but the numbers of the videos. What a model would compute again in every step of a frozen
feature is computed once: the mean over an expert's rows (CE, MoEE) or their maximum over all rows (MMT).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.models.batch import ExpertFeatures
from wordreel.lab.models.collate import choose_rows
from wordreel.lab.models.config import ExpertConfig, MMTConfig, ModelConfig
from wordreel.lab.training.data.packed import Packed, StoredRows, device_for
from wordreel.lab.training.data.pairs import Pairs
from wordreel.types import Int64


@dataclass(frozen=True)
class StoredExpert:
    """One expert's rows of all videos, with their times."""

    stored: StoredRows
    times: Tensor  # [rows + 1]
    pooled: Tensor | None  # [videos, dim]
    eval_rows: Tensor | None  # [videos, most] rows kept in evaluation where there are too many


class FeatureStore:
    """`batch(videos)` gives what the model takes. `fixed` gives every batch the same shape.

    `dropout` is the chance that a training batch hides an expert of a video.
    """

    def __init__(
        self,
        pairs: Pairs,
        config: ModelConfig,
        device: torch.device,
        fixed: bool = False,
        dropout: float = 0.0,
    ) -> None:
        self.config, self.device, self.fixed, self.dropout = config, device, fixed, dropout
        self.sampled, self._count = isinstance(config, MMTConfig), len(pairs)
        packed = {expert.name: _prepared(pairs, expert, config) for expert in config.experts}
        if not any(len(prepared[0].values) for prepared in packed.values()):
            raise TrainingError(
                f"{pairs.name} has none of the model's experts {', '.join(config.names)}; it has "
                f"{', '.join(pairs.rows)}"
            )
        size = 4 * sum(prepared[0].values.size for prepared in packed.values())
        self.storage_device = device_for(size, device)
        self.experts = {expert.name: self._store(expert, *packed[expert.name]) for expert in config.experts}

    def __len__(self) -> int:
        return self._count

    def _store(self, expert: ExpertConfig, packed: Packed, pooled: Tensor | None) -> StoredExpert:
        times = packed.times if packed.times is not None else np.full(len(packed.values), np.nan)
        most = expert.max_tokens
        eval_rows = None
        if self.sampled and most and packed.longest > most:
            table = np.full((len(packed), most), packed.longest, np.int64)  # no row there
            for count in np.unique(packed.counts):
                some = choose_rows(int(count), most)
                table[packed.counts == count, : len(some)] = some
            eval_rows = torch.from_numpy(table).to(self.storage_device)
        stored = StoredRows(packed, self.device, self.storage_device)
        clock = stored.put(torch.from_numpy(np.append(times, np.nan).astype(np.float32)))
        return StoredExpert(stored, clock, None if pooled is None else stored.put(pooled), eval_rows)

    def batch(
        self, videos: Tensor, training: bool = False, centres: Tensor | None = None, window: float = 0.0
    ) -> dict[str, ExpertFeatures]:
        """Return features of the videos `[b]`; with `centres [b]` (seconds; NaN: none) of rows near them."""
        numbers = videos.to(self.storage_device)
        batch = {
            expert.name: self._expert(expert, numbers, training, centres, window)
            for expert in self.config.experts
        }
        if training and self.dropout:
            batch = drop_experts(batch, self.dropout)
        if self.storage_device != self.device:
            batch = {name: _to_device(part, self.device) for name, part in batch.items()}
        return batch

    def _expert(
        self, expert: ExpertConfig, videos: Tensor, training: bool, centres: Tensor | None, window: float
    ) -> ExpertFeatures:
        """Rows of one expert; training draws them where there are too many.

        With a window they are those within half of it around `centres`, timed from the window's start, and
        the model pools over those. Rows of unknown time count as inside, and a video all of whose rows are
        outside keeps them all.
        """
        found = self.experts[expert.name]
        stored, longest = found.stored, found.stored.longest
        most = longest if self.fixed else stored.most(videos)
        width = max(1, min(most, expert.max_tokens or most))
        positions = torch.arange(width, device=videos.device)  # of each video's rows; a row too late is none
        pooled = None if found.pooled is None else found.pooled[videos]
        first = None
        if longest and centres is not None and window:
            every, real = stored.rows(videos, torch.arange(longest, device=videos.device))
            times, pooled = found.times[every], None
            first = (centres.to(videos.device) - window / 2).clamp(min=0)[:, None]
            inside = real & ~(times < first) & ~(times > first + window)
            inside = torch.where(inside.any(dim=1, keepdim=True), inside, real)
            keys = torch.arange(longest, device=videos.device) / longest
            if self.sampled and training:
                keys = torch.rand(real.shape, device=videos.device)
            positions = smallest_keys(inside, keys.expand_as(real), width)
        elif found.eval_rows is not None and training:
            real = torch.arange(longest, device=videos.device) < stored.counts[videos][:, None]
            positions = smallest_keys(real, torch.rand(real.shape, device=videos.device), width)
        elif found.eval_rows is not None:
            positions = found.eval_rows[videos][:, :width]
        rows, mask = stored.rows(videos, positions)
        clock = found.times[rows]
        if first is not None:
            clock = torch.where(torch.isnan(first), clock, (clock - first).clamp(min=0))
        return ExpertFeatures(stored.gather(rows), mask, clock, pooled)


def smallest_keys(here: Tensor, keys: Tensor, most: int) -> Tensor:
    """Return `[b, most]`: the numbers of the rows with the least keys, in order; `n` where there are no more.

    `here [b, n]` are the rows there are. Random keys draw without replacement.
    """
    count = here.shape[1]
    chosen = keys.masked_fill(~here, 2.0).topk(most, dim=1, largest=False).indices
    return torch.where(here.gather(1, chosen), chosen, count).sort(dim=1).values


def drop_experts(batch: dict[str, ExpertFeatures], chance: float) -> dict[str, ExpertFeatures]:
    """Hide each expert from each video with this chance; a video keeps at least one of those it has."""
    available = torch.stack([part.available for part in batch.values()], dim=1)  # [b, experts]
    keys = torch.rand(available.shape, device=available.device)
    stays = available & (keys >= chance)
    best = keys.masked_fill(~available, -1.0).argmax(dim=1, keepdim=True)
    last = torch.zeros_like(available).scatter(1, best, True) & available
    stays = stays | (last & ~stays.any(dim=1, keepdim=True))
    return {
        name: part._replace(mask=part.mask & stays[:, number, None])
        for number, (name, part) in enumerate(batch.items())
    }


def _to_device(part: ExpertFeatures, device: torch.device) -> ExpertFeatures:
    moved: Any = (None if x is None else x.to(device, non_blocking=True) for x in part)
    return ExpertFeatures(*moved)


def _prepared(pairs: Pairs, expert: ExpertConfig, config: ModelConfig) -> tuple[Packed, Tensor | None]:
    """Return an expert's rows as the model uses them, and what it pools over all of them."""
    packed = pairs.rows.get(expert.name)
    if packed is None or not len(packed.values):
        none = Packed(np.zeros((0, expert.dim), np.float32), np.zeros(len(pairs), np.int64))
        return none, torch.zeros(len(pairs), expert.dim) if isinstance(config, MMTConfig) else None
    if packed.values.shape[1] != expert.dim:
        raise TrainingError(
            f"{expert.name} has rows of {packed.values.shape[1]} numbers in {pairs.name}, the recipe says "
            f"{expert.dim}; set model.expert.{expert.name}.dim={packed.values.shape[1]}"
        )
    if isinstance(config, MMTConfig):
        return packed, torch.from_numpy(_pooled(packed, config.aggregate == "mean"))
    if expert.pool == "mean":
        some = packed.counts if not expert.max_tokens else np.minimum(packed.counts, expert.max_tokens)
        means = _pooled(packed, mean=True, counts=some)[packed.counts > 0]
        return Packed(means, (packed.counts > 0).astype(np.int64)), None
    if expert.max_tokens:
        return _cut(packed, expert.max_tokens), None
    return packed, None


def _pooled(packed: Packed, mean: bool, counts: Int64 | None = None) -> np.ndarray:
    """`[videos, dim]` mean or maximum over each video's first rows; 0 where it has none."""
    counts = packed.counts if counts is None else counts
    pooled = np.zeros((len(packed), packed.values.shape[1]), np.float32)
    for number, (start, count) in enumerate(zip(packed.starts, counts, strict=True)):
        if count:
            rows = packed.values[start : start + count]
            pooled[number] = rows.mean(axis=0) if mean else rows.max(axis=0)
    return pooled


def _cut(packed: Packed, most: int) -> Packed:
    """Return the first rows of every video: those that a model with `max_tokens` would look at."""
    position = np.arange(len(packed.values)) - np.repeat(packed.starts, packed.counts)
    mask = position < most
    times = None if packed.times is None else packed.times[mask]
    return Packed(packed.values[mask], np.minimum(packed.counts, most), times)
