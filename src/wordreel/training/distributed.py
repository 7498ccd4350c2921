"""Several processes, one model: every process embeds its part of a batch, and all pairs are negatives of all.

Started by torchrun; one process is a world of its own and none of this does anything.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from wordreel.models.batch import Queries, Videos


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1
    local: int = 0  # number of this process on its machine

    @property
    def chief(self) -> bool:
        """Whether this process measures, saves and reports."""
        return self.rank == 0

    def part(self, batch: Tensor) -> Tensor:
        """This process's stretch of a batch `[b]`, whose length the world divides."""
        each = len(batch) // self.size
        return batch[self.rank * each : (self.rank + 1) * each]

    def even(self, batch: Tensor) -> Tensor:
        """A batch without the last pairs that cannot be shared out evenly."""
        return batch[: len(batch) // self.size * self.size]

    def gather(self, videos: Videos, queries: Queries) -> tuple[Videos, Queries]:
        """Everybody's embeddings in the order of the batch, with gradients.

        Every process computes the same loss L of all pairs. The gradient that comes back to an embedding is
        the sum over processes, and parameters' gradients are averaged over processes afterwards, so what is
        left is the gradient of L.
        """
        if self.size == 1:
            return videos, queries
        available = [torch.empty_like(videos.available) for _ in range(self.size)]
        dist.all_gather(available, videos.available.contiguous())
        return (
            Videos(_joined(videos.vectors), torch.cat(available)),
            Queries(_joined(queries.vectors), _joined(queries.weights)),
        )

    def wrap(self, module: nn.Module, device: torch.device) -> nn.Module:
        """The module with gradients averaged over the world."""
        if self.size == 1:
            return module
        ids = [device.index or 0] if device.type == "cuda" else None
        # Gradients are summed in stretches, which are laid out anew after a first step unless unused ones are
        # looked for. With three or more summands the layout decides how a sum is rounded, and a resumed run
        # has a first step of its own.
        steady = device.type == "cpu" and self.size > 2
        return nn.parallel.DistributedDataParallel(module, device_ids=ids, find_unused_parameters=steady)

    def agree(self, value: float, device: torch.device) -> float:
        """The chief's number, for everybody."""
        if self.size == 1:
            return value
        told = torch.tensor([value], dtype=torch.float64, device=device)
        dist.broadcast(told, 0)
        return float(told.item())


def _joined(x: Tensor) -> Tensor:
    from torch.distributed.nn.functional import all_gather

    parts: Any = all_gather(x.contiguous())  # type: ignore[no-untyped-call]
    return torch.cat(list(parts))


@contextmanager
def joined(device_type: str) -> Iterator[World]:
    """The world that torchrun describes in the environment, or this process alone.

    Nobody leaves while others still work. A world that had been joined before is not left here.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    ours = not dist.is_initialized()
    if ours:
        dist.init_process_group("nccl" if device_type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size, int(os.environ.get("LOCAL_RANK", "0")))
        if ours:
            dist.barrier()
    finally:
        if ours:
            gc.collect()  # a wrapped module that is still held would keep threads of the world running
            dist.destroy_process_group()
