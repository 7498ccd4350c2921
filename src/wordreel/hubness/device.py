"""Where a bank is fitted: by NumPy on the CPU, or by torch on a GPU (or any device torch supports).

`auto` takes the GPU where there is one, torch is installed and the bank is large enough to repay importing
it; torch is not imported to find out that there is no GPU.

On a device the statistics of a block are those of `bank_statistics`, computed by torch in one pass over the
similarities: those of embeddings, of mixtures of experts, or of a matrix that is copied block by block. Only
O(gallery + bank) numbers come back, so the state is an ordinary one. Similarities differ from those of the
CPU in the last bits. Memory on the device: the embeddings in float32 and a few blocks of 256 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from wordreel.errors import HubnessError, NextStep
from wordreel.hubness.bank_statistics import (
    SMALL_BETA,
    ActivationSet,
    ColumnMean,
    LogSumExp,
    Spec,
    Statistic,
    TopK,
    padded,
)
from wordreel.hubness.blocks import LARGEST, Similarities, as_source, row_batches
from wordreel.hubness.similarity_sources import MixtureSource
from wordreel.types import Array
from wordreel.util.machine import find_gpu

if TYPE_CHECKING:
    from wordreel.hubness.fit import Collector

AUTO_FROM = 1 << 26  # similarities: fewer take NumPy less time than torch takes to start
BLOCK = 1 << 26  # similarities of a block on the device
USE_CPU = NextStep("fit on the CPU instead (--device cpu)")


class _Fitted(Protocol):
    name: ClassVar[str]
    gpu: ClassVar[bool]


def pick_gpu(device: str, banks: Iterable[Similarities], methods: Iterable[_Fitted] = ()) -> str | None:
    """Return the torch device to fit on; None for NumPy on the CPU.

    Args:
        device: `cpu`, `auto`, `cuda` or one of several GPUs, as `cuda:1`.
        banks: The similarities to fit, whose size decides for `auto`; a stream counts as large.
        methods: What is fitted. One without a GPU version takes `auto` to the CPU.

    Raises:
        HubnessError: The device is unknown, a GPU was requested that is not there, or a method has no GPU
            version.

    >>> pick_gpu("cpu", [np.zeros((2, 3))]) is None, pick_gpu("auto", [np.zeros((2, 3))]) is None
    (True, True)
    """
    if device == "cpu":
        return None
    unable = [method.name for method in methods if not method.gpu]
    if device == "auto":
        return find_gpu() if not unable and _size(banks) >= AUTO_FROM else None
    name, _, number = device.partition(":")
    if name != "cuda" or not (number.isdecimal() or (not number and device == name)):
        raise HubnessError(f"there is no device {device!r}", NextStep("choose auto, cpu, cuda or cuda:1"))
    if unable:
        raise HubnessError(f"{unable[0]!r} has no GPU version", USE_CPU)
    gpu = find_gpu()
    if gpu is None:
        raise HubnessError("there is no CUDA GPU that torch can use", USE_CPU)
    return device if gpu == "cuda" else gpu


def _size(banks: Iterable[Similarities]) -> int:
    sources = [as_source(blocks) for blocks in banks]
    if None in sources:
        return AUTO_FROM
    return sum(source.shape[0] * source.shape[1] for source in sources if source and len(source.shape) == 2)


def gather_on_device(blocks: Similarities, collector: Collector, device: str) -> int:
    """Gather the collector's statistics of a bank on a device; returns the number of items."""
    import torch

    items, largest = 0, torch.zeros((), device=device)
    with torch.inference_mode():
        for block in _device_blocks(torch, blocks, device):
            collector.rows, items = collector.rows + len(block), block.shape[1]
            # amax passes NaN on, and is read only once, at the end, so that the device never waits.
            largest = torch.maximum(largest, block.abs().amax())
            for spec in collector.parts:
                collector.add(spec, STATISTICS[spec.kind](torch, block, spec))
    if not collector.rows:
        raise HubnessError("the bank has no queries; give it at least one")
    collector.max_abs = float(largest)
    if not collector.max_abs <= LARGEST:
        raise HubnessError(
            f"a similarity is {collector.max_abs}; leave out or mend the embeddings that are not finite"
        )
    return items


def _device_blocks(torch: Any, blocks: Similarities, device: str) -> Iterator[Any]:
    """Yield `[some queries, items]` float32 tensors on the device, in order."""
    if not isinstance(blocks, MixtureSource):
        for rows in row_batches(blocks):
            step = max(1, BLOCK // rows.shape[1])
            for start in range(0, len(rows), step):
                yield torch.from_numpy(np.array(rows[start : start + step], np.float32)).to(device)
        return
    queries, items = (_tensor(torch, array, device) for array in (blocks.queries, blocks.items))
    step = max(1, BLOCK // len(items)) if len(items) else 1
    weights, available = (_tensor(torch, array, device) for array in (blocks.weights, blocks.available))
    for start in range(0, len(queries), step):
        own = weights[start : start + step]
        top = (queries[start : start + step] * own[:, :, None]).flatten(1) @ items.T
        bottom = own @ available.T
        yield torch.where(bottom > 0, top / bottom.clamp_min(torch.finfo(torch.float32).tiny), 0.0)


def _tensor(torch: Any, array: Array, device: str) -> Any:
    return torch.from_numpy(np.array(array, np.float32)).to(device)


def _log_sum_exp(torch: Any, block: Any, spec: Spec) -> LogSumExp:
    shift = block.amax(0)
    kind = torch.float64 if spec.parameter < SMALL_BETA else torch.float32
    total = ((block - shift).to(kind) * spec.parameter).exp_().sum(0, dtype=torch.float64)
    return LogSumExp(spec.parameter, len(block), _numpy(shift.double()), _numpy(total))


def _activation_set(torch: Any, block: Any, spec: Spec) -> ActivationSet:
    items, k = block.shape[1], spec.parameter
    if k == 1:
        best = block.amax(1, keepdim=True)
        numbers = torch.arange(items, device=block.device)
        # argmax does not promise the first of equals on a GPU.
        ids = torch.where(block == best, numbers, items - 1).amin(1, keepdim=True)
    else:
        best, ids = (part[:, :k] for part in block.sort(dim=1, descending=True, stable=True))
    return ActivationSet(k, items, *padded(_numpy(ids), _numpy(best), k))


def _top_k(torch: Any, block: Any, spec: Spec) -> TopK:
    values = block.T.topk(min(spec.parameter, len(block)), dim=1).values
    return TopK(spec.parameter, len(block), _numpy(values))


def _column_mean(torch: Any, block: Any, spec: Spec) -> ColumnMean:
    return ColumnMean(None, len(block), _numpy(block.sum(0, dtype=torch.float64)))


STATISTICS: dict[type[Statistic], Callable[[Any, Any, Spec], Statistic]] = {
    LogSumExp: _log_sum_exp,
    ActivationSet: _activation_set,
    TopK: _top_k,
    ColumnMean: _column_mean,
}


def _numpy(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())
