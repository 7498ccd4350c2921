"""Distributed training: each process embeds its shard of a batch, and all pairs are negatives of all others.

Start it with torchrun. A single process is a world of size 1, for which everything here is a no-op.
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


@dataclass(frozen=True)
class World:
    """The processes of a training, and what they exchange."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main_process(self) -> bool:
        """Whether this process validates, saves and reports."""
        return self.rank == 0

    def shard(self, batch: Tensor) -> Tensor:
        """Return this process's part of a batch `[b]`; the world size divides `b`."""
        each = len(batch) // self.size
        return batch[self.rank * each : (self.rank + 1) * each]

    def divisible(self, batch: Tensor) -> Tensor:
        """Return the batch without the last pairs that cannot be divided evenly."""
        return batch[: len(batch) // self.size * self.size]

    def gather(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return tensors with the batch first, of all processes in batch order, with gradients.

        Every process computes the same loss L of all pairs, and so the same gradient of every embedding. Each
        process takes that of its own embeddings, times the number of processes; parameter gradients are
        averaged over processes afterwards, so what is left is the gradient of L.
        """
        if self.size == 1:
            return tensors
        return tuple(_Gather.apply(x) for x in tensors)  # type: ignore[no-untyped-call]

    def wrap(self, module: nn.Module, device: torch.device) -> nn.Module:
        """Return the module with gradients averaged over the world."""
        if self.size == 1:
            return module
        ids = [device.index or 0] if device.type == "cuda" else None
        # DDP sums gradients in buckets and lays the buckets out again after the first step, unless it looks
        # for unused parameters. With three or more summands the layout decides how a sum is rounded, and a
        # resumed run has a first step of its own.
        fixed_buckets = device.type == "cpu" and self.size > 2
        return nn.parallel.DistributedDataParallel(
            module, device_ids=ids, find_unused_parameters=fixed_buckets
        )

    def broadcast(self, value: float, device: torch.device) -> float:
        """Return the main process's number, on every process."""
        if self.size == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=device)
        dist.broadcast(shared, 0)
        return float(shared.item())


class _Gather(torch.autograd.Function):
    """All shards forward, the own shard's gradient back: no communication in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        size = dist.get_world_size()
        return gradient.chunk(size)[dist.get_rank()] * size


@contextmanager
def init_world(device_type: str) -> Iterator[World]:
    """Yield the world that torchrun describes in the environment, or this process alone.

    Waits at the end until all processes are done. A process group that exists already is left open.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World()
        return
    owned = not dist.is_initialized()
    if owned:
        dist.init_process_group("nccl" if device_type == "cuda" else "gloo")
    try:
        yield World(dist.get_rank(), size, int(os.environ.get("LOCAL_RANK", "0")))
        if owned:
            dist.barrier()
    finally:
        if owned:
            gc.collect()  # a wrapped module that is still referenced would keep the group's threads alive
            dist.destroy_process_group()
