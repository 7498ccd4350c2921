"""Every statistic of a bank in one fused pass on a GPU: similarities are never written to its memory.

Launches the kernels of `triton_kernels` over chunks of the gallery, which may lie in main memory; what comes
back is O(gallery + bank). float16 and bfloat16 embeddings are multiplied as they are, with float32 sums; of
float32 ones `precision="full"` keeps about 22 bits of each product (three TF32 products) and "tf32" about 11.

Memory on the device: the bank, two chunks of the gallery and 1 GB of scratch at most.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordreel.hubness.blocks import LARGEST

MOST_KEPT = 31  # largest similarities of an item that are stored, and one more for the floor
LEAST_BETA = 0.1  # below it exponentials in float32 lose digits that a division by β brings out
SAFE_BITS = 100.0  # 2^±100 and sums of such terms are far from the limits of float32
SCRATCH = 1 << 28  # floats
RUN = 128  # rows of a slot in a segment, which is 32 tiles
MEETINGS = 0.3  # slots of an item in which some of its largest may meet, on average
NONE = -3e38  # what the kernels write where there is no value


@dataclass(frozen=True)
class FusedRequest:
    """What to gather: log-sum-exp with `beta`, the largest `width` of each item; winners always are."""

    beta: float | None = None
    width: int = 0


@dataclass(frozen=True)
class FusedResult:
    """`shift` and `total` as in `LogSumExp`, `values` and `floor` as in `TopK`; None where not request."""

    ids: Any  # [bank], a tensor on the device
    scores: Any
    shift: Any  # [items] float64, or None
    total: Any
    values: Any  # [items, width], or None
    floor: Any
    max_abs: float  # the largest similarity of a winner; infinite where a similarity might be


@dataclass(frozen=True)
class Tile:
    """Sizes of a tile of the product and how its loads are spread."""

    tall: int
    wide: int
    deep: int
    warps: int
    stages: int
    precision: str

    @property
    def slots(self) -> int:
        return self.tall // 4


def available(torch: Any, device: Any) -> bool:
    """Whether the kernels run on this device: an NVIDIA GPU of compute capability 8 or more, and Triton."""
    from wordreel.hubness import triton_kernels

    device = torch.device(device)
    if not triton_kernels.READY or device.type != "cuda" or torch.version.cuda is None:
        return False
    return bool(torch.cuda.get_device_capability(device)[0] >= 8)


def run_fused(
    torch: Any, bank: Any, gallery: Any, device: Any, request: FusedRequest, precision: str
) -> FusedResult:
    """One pass. `bank` and `gallery` are tensors of one kind; only chunks of the gallery go to the device."""
    work = _Pass(torch, bank, device, request, _tile(torch, bank, device, precision))
    host = HostBuffers(torch, device, len(gallery), request.beta is not None, request.width)
    for span in work.spans(len(gallery)):
        host.enqueue(torch, span, work.chunk(torch, gallery, span))
    host.flush(torch)
    shift, total, values, floor = host.arrays
    return FusedResult(work.ids, work.scores, shift, total, values, floor, work.max_abs())


class _Pass:
    """The bank on the device, and what is merged over chunks of the gallery."""

    def __init__(self, torch: Any, bank: Any, device: Any, request: FusedRequest, tile: Tile) -> None:
        self.bank, self.device, self.request, self.tile = _ready(torch, bank, device), device, request, tile
        self.rows, self.tiles = len(bank), -(-len(bank) // tile.tall)
        self.best = torch.full((self.rows,), -(1 << 63), dtype=torch.int64, device=device)
        self.ids = torch.zeros(self.rows, dtype=torch.int32, device=device)
        self.scores = torch.zeros(self.rows, dtype=torch.float32, device=device)
        self.longest = _longest(torch, self.bank)
        self.bound = 0.0  # on every absolute similarity so far
        # Of the w largest of an item, C(w, 2) / n pairs are expected to meet in one of n slots.
        pairs = math.comb(request.width + 1, 2) / MEETINGS / tile.slots
        run = max(1, min(RUN // 4, int(self.tiles / max(1, pairs))))
        self.run, self.segments = run, -(-self.tiles // run)  # tiles to a segment

    def spans(self, items: int) -> list[tuple[int, int]]:
        """Chunks of whole strips whose scratch fits."""
        width = max(1, SCRATCH // (self.segments * 2 * self.tile.slots) // self.tile.wide) * self.tile.wide
        return [(at, min(at + width, items)) for at in range(0, items, width)]

    def chunk(self, torch: Any, gallery: Any, span: tuple[int, int]) -> list[Any]:
        """The statistics of some items, with the queries they win merged in."""
        start, stop = span
        items = self._fetch(torch, gallery, span)
        self.bound = max(self.longest * _longest(torch, items), self.bound)
        shift, total, lists = self._launch(torch, items, start // self.tile.wide)
        self._winners(items, start // self.tile.wide)
        values = floor = None
        if lists is not None:
            lists[lists <= NONE] = -math.inf
            width = self.request.width
            values, floor = lists[:, :width].contiguous(), lists[:, width].contiguous()
        result = (shift, total, values, floor)
        return [None if part is None else part[: stop - start] for part in result]

    def max_abs(self) -> float:
        return float(self.scores.abs().amax()) if self.bound <= LARGEST else math.inf

    def _fetch(self, torch: Any, gallery: Any, span: tuple[int, int]) -> Any:
        if gallery.device == self.best.device:
            return _ready(torch, gallery[span[0] : span[1]], self.device)
        # Copies have a stream of their own, so that the next chunk comes while this one is worked on.
        copies = torch.cuda.Stream(self.device)
        with torch.cuda.stream(copies):
            items = _ready(torch, gallery[span[0] : span[1]], self.device)
        torch.cuda.current_stream(self.device).wait_stream(copies)
        items.record_stream(torch.cuda.current_stream(self.device))
        return items

    def _launch(self, torch: Any, items: Any, start: int) -> tuple[Any, ...]:
        from triton.tools.tensor_descriptor import (  # type: ignore[import-not-found, unused-ignore]
            TensorDescriptor,
        )

        from wordreel.hubness import triton_kernels as kernels

        tile, request, segments, dim = self.tile, self.request, self.segments, self.bank.shape[1]
        count = -(-len(items) // tile.wide)
        columns = count * tile.wide
        if columns > len(items):
            # The last item again, so that it ties with itself instead of a zero beating it.
            items = torch.cat([items, items[-1:].expand(columns - len(items), -1)])

        def scratch(*shape: int) -> Any:
            return torch.empty(shape, dtype=torch.float32, device=self.device)

        scale = (request.beta or 0.0) / math.log(2)
        logsum = 0 if request.beta is None else 1 if scale * self.bound <= SAFE_BITS else 2
        sums = scratch(segments, columns) if logsum else scratch(1)
        shifts = torch.zeros_like(sums)
        tops = scratch(segments, 2 * tile.slots, columns) if request.width else scratch(1)
        kernels.strips[(count * segments,)](
            TensorDescriptor.from_tensor(self.bank, [tile.tall, tile.deep]),
            TensorDescriptor.from_tensor(items, [tile.wide, tile.deep]),
            self.best,
            shifts,
            sums,
            tops,
            self.rows,
            count,
            start,
            self.run,
            scale,
            DIM=dim,
            TALL=tile.tall,
            WIDE=tile.wide,
            DEEP=tile.deep,
            LOGSUM=logsum,
            TOP=request.width > 0,
            PRECISION=tile.precision,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        shift = total = lists = None
        if logsum:
            shift = shifts.amax(0).double()
            total = (((shifts.double() - shift) * request.beta).exp() * sums.double()).sum(0)
        if request.width:
            lists = self._lists(scratch, items, tops)
        return shift, total, lists

    def _lists(self, scratch: Any, items: Any, tops: Any) -> Any:
        """The largest similarities of each item, sorted, `[items, width + 1 or more]`."""
        from wordreel.hubness import triton_kernels as kernels

        tile, columns, width = self.tile, len(items), self.request.width
        keep, each = 16 if width < 16 else 32, 8
        lists, bounds = scratch(columns, keep), scratch(columns)
        kernels.select[(-(-columns // each),)](
            tops, lists, bounds, columns, self.segments, SLOTS=tile.slots, KEEP=keep, ITEMS=each, num_warps=1
        )
        kernels.mend[(columns,)](
            self.bank,
            items,
            tops,
            lists,
            bounds,
            self.rows,
            columns,
            self.segments,
            self.run,
            self.bank.shape[1],
            width,
            TALL=tile.tall,
            DEEP=16,
            KEEP=keep,
            RUN=RUN,
            num_warps=4,
        )
        return lists

    def _winners(self, items: Any, start: int) -> None:
        from wordreel.hubness import triton_kernels as kernels

        kernels.winners[(self.rows,)](
            self.bank,
            items,
            self.best,
            self.ids,
            self.scores,
            len(items),
            start,
            -(-len(items) // self.tile.wide),
            self.bank.shape[1],
            WIDE=self.tile.wide,
            DEEP=32,
            num_warps=8,
        )


def _tile(torch: Any, bank: Any, device: Any, precision: str) -> Tile:
    """The fastest on an H200, and a smaller one for GPUs with less memory in a multiprocessor."""
    deep = 128 // bank.element_size()  # 128 bytes of each row
    if bank.dtype == torch.float32 and precision == "full":
        return Tile(128, 128, deep, 8, 3, "tf32x3")
    roomy = torch.device(device).type != "cuda" or (
        torch.cuda.get_device_properties(device).shared_memory_per_block_optin > 150_000
    )
    return Tile(256, 128, deep, 8, 3, "tf32") if roomy else Tile(128, 64, deep, 4, 2, "tf32")


def _ready(torch: Any, vectors: Any, device: Any) -> Any:
    """On the device, contiguous, with zeros at the end where rows are no multiple of 16 bytes."""
    vectors = vectors.to(device)
    missing = -vectors.shape[1] % (16 // vectors.element_size())
    return (torch.nn.functional.pad(vectors, (0, missing)) if missing else vectors).contiguous()


def _longest(torch: Any, vectors: Any) -> float:
    """The largest norm; infinite where one is or is not a number."""
    result = float(torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float32).amax())
    return result if result < math.inf else math.inf


class HostBuffers:
    """Results in main memory. Those of a chunk are copied while the next one is computed."""

    def __init__(self, torch: Any, device: Any, items: int, sums: bool, width: int) -> None:
        self.arrays: list[Any] = [None, None, None, None]  # shift, total, values and floor
        if sums:
            self.arrays[:2] = np.empty(items), np.empty(items)
        if width:
            self.arrays[2:] = np.empty((items, width), np.float32), np.empty(items, np.float32)
        self.pending: list[Any] = []
        self.stream = torch.cuda.Stream(device) if torch.device(device).type == "cuda" else None

    def enqueue(self, torch: Any, span: tuple[int, int], tensors: list[Any]) -> None:
        """Queue a chunk that is being computed, and copy the one before it."""
        done = None if self.stream is None else torch.cuda.current_stream(self.stream.device).record_event()
        self.flush(torch)
        self.pending = [(span, tensors, done)]

    def flush(self, torch: Any) -> None:
        for (start, stop), tensors, done in self.pending:
            with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
                if self.stream is not None:
                    self.stream.wait_event(done)
                for array, tensor in zip(self.arrays, tensors, strict=True):
                    if array is not None:
                        torch.from_numpy(array[start:stop]).copy_(tensor)
        self.pending = []
