"""Fit methods on a GPU (or any device torch supports). torch is an optional extra.

The same statistics as `accumulate`, computed on the device in one pass over the similarities: those of
embeddings, of mixtures of experts, or of a matrix that is copied block by block. On an NVIDIA GPU with
Triton, which comes with torch there, the pass over embeddings is fused (`triton_fit`): log-sum-exp,
activation set and up to 31 largest values are taken from similarities that never reach memory. Everything
else goes block by block: a float32 matrix product, and of each block, before the next one, all statistics.
Only O(gallery + bank) numbers come back, as an ordinary state. Similarities differ from those of the CPU in
the last bits. Memory on the device: the embeddings in float32 and a few blocks of 256 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from wordreel.errors import HubnessError, NextStep
from wordreel.hubness import triton_fit
from wordreel.hubness.accumulate import warn_if_logits
from wordreel.hubness.activation_set import ActivationSet
from wordreel.hubness.blocks import LARGEST, Similarities
from wordreel.hubness.device_banks import DeviceBank, EmbeddingBank, as_tensor, device_bank
from wordreel.hubness.log_sum_exp import LogSumExp
from wordreel.hubness.method import Method
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.statistic import Statistic
from wordreel.hubness.top_k import TopK
from wordreel.hubness.torch_statistics import Key, builder_of, to_numpy
from wordreel.types import Array

FUSE_FROM = 1 << 28  # similarities from which on the fused pass repays being compiled

MatmulPrecision = Literal["full", "tf32"]


def fit_on_device(
    methods: Sequence[Method],
    blocks: Similarities,
    gallery: Similarities | None = None,
    *,
    device: str = "cuda",
) -> list[State]:
    """`fit_many` on a device: one state per method from one pass over the similarities."""
    torch = import_torch()
    given: dict[str, DeviceBank] = {QUERIES: device_bank(torch, blocks)}
    if gallery is not None:
        given[GALLERY] = device_bank(torch, gallery)
    return _fit(torch, methods, given, device, "full")


def fit_embeddings_on_device(
    methods: Sequence[Method],
    bank: Array | Any,
    gallery: Array | Any,
    extra: Array | Any | None = None,
    *,
    device: str = "cuda",
    precision: MatmulPrecision = "full",
) -> list[State]:
    """Fit several methods on embeddings in one pass on a GPU.

    Embeddings are arrays or tensors, of float16, bfloat16 or float32 (others become float32). A gallery in
    main memory is copied to the device in chunks.

    Args:
        methods: What to fit (`make_method`).
        bank: Embeddings of the bank queries, `[m, d]`.
        gallery: Embeddings of the gallery items, `[n, d]`.
        extra: Embeddings of the gallery bank, `[g, d]`, for the dual methods.
        device: A torch device.
        precision: `tf32` lets the fused pass round float32 embeddings to 11 bits, over three times as fast;
            half-precision ones are multiplied exactly either way.

    Returns:
        One state per method, as `fit_embeddings` returns it.

    Raises:
        HubnessError: The shapes do not fit, a similarity is not finite, a method has no GPU version, or
            torch is not installed.
    """
    torch = import_torch()
    if precision not in ("full", "tf32"):
        raise HubnessError(f"precision is 'full' or 'tf32', not {precision!r}")
    items = as_tensor(torch, gallery)
    given: dict[str, DeviceBank] = {QUERIES: EmbeddingBank(as_tensor(torch, bank), items)}
    if extra is not None:
        given[GALLERY] = EmbeddingBank(as_tensor(torch, extra), items)
    for one in given.values():
        _check(one.rows, items)  # type: ignore[attr-defined]
    return _fit(torch, methods, given, device, precision)


def import_torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError(
            "fitting on a GPU needs torch", NextStep("install it: pip install 'wordreel[train]'")
        ) from None
    return torch


def _fit(
    torch: Any,
    methods: Sequence[Method],
    given: Mapping[str, DeviceBank],
    device: str,
    precision: MatmulPrecision,
) -> list[State]:
    for method in methods:
        if not method.gpu:
            raise HubnessError(f"{method.name!r} is not fitted in one pass on a GPU; fit it on the CPU")
        if set(given) != set(method.banks):
            raise HubnessError(
                f"{method.name!r} is fitted with {' and '.join(method.banks)}, not {list(given)}"
            )
    banks: list[dict[str, BankState]] = [{} for _ in methods]
    items = 0
    with torch.inference_mode():
        for name, bank in given.items():
            keys = [{key: one.key for key, one in method.builders(name).items()} for method in methods]
            wanted = {key for one in keys for key in one.values()}
            result = _accumulate(torch, bank, wanted, device, precision)
            if items and result.items != items:
                raise HubnessError(f"the bank has {result.items} columns but the gallery has {items} items")
            items = result.items
            for number, (method, one) in enumerate(zip(methods, keys, strict=True)):
                warn_if_logits(result.max_abs, method.inverse_temperature(name))
                own = {key: result.statistics[statistic] for key, statistic in one.items()}
                banks[number][name] = BankState(result.size, own)
    return [State(method, items, own) for method, own in zip(methods, banks, strict=True)]


def _check(rows: Any, items: Any) -> None:
    if rows.ndim != 2 or items.ndim != 2 or rows.shape[1] != items.shape[1]:
        shapes = f"{tuple(rows.shape)} and {tuple(items.shape)}"
        raise HubnessError(f"embeddings are matrices [rows, dim] of one dim, not {shapes}")
    if 0 in (*rows.shape, *items.shape):
        raise HubnessError("the bank and the gallery need at least one embedding each")


@dataclass(frozen=True)
class _Result:
    statistics: dict[Key, Statistic]
    size: int
    items: int
    max_abs: float


def _accumulate(
    torch: Any, bank: DeviceBank, wanted: set[Key], device: str, precision: MatmulPrecision
) -> _Result:
    """Every wanted statistic of one bank, fused where that is possible."""
    statistics: dict[Key, Statistic] = {}
    max_abs = 0.0
    if isinstance(bank, EmbeddingBank):
        rows, items = bank.rows, bank.items
        fused = {key for key in wanted if _can_fuse(key)}
        if fused and len(rows) * len(items) >= FUSE_FROM and triton_fit.available(torch, device):
            statistics, max_abs = fuse(torch, rows, items, fused, device, precision)
            if set(statistics) == wanted:
                return _Result(statistics, len(rows), len(items), max_abs)
    builders = {key: builder_of(key) for key in sorted(wanted - set(statistics), key=str)}
    size, count, largest = accumulate_blocks(torch, bank.blocks(torch, device), builders)
    statistics |= {key: builder.build(size) for key, builder in builders.items()}
    return _Result(statistics, size, count, max(max_abs, largest))


def accumulate_blocks(
    torch: Any, blocks: Iterator[Any], builders: Mapping[Key, Any]
) -> tuple[int, int, float]:
    """Update the builders with every block; the numbers of queries and items and the largest similarity."""
    size = items = 0
    max_abs: Any = None
    for block in blocks:
        size, items = size + len(block), block.shape[1]
        # amax passes NaN on, and is read only once, at the end, so that the device never waits.
        here = block.abs().amax()
        max_abs = here if max_abs is None else torch.maximum(max_abs, here)
        for builder in builders.values():
            builder.update(torch, block)
    if not size:
        raise HubnessError("the bank has no queries; give it at least one")
    largest = float(max_abs)
    if not largest <= LARGEST:
        raise HubnessError(f"a similarity is {largest}; leave out or mend the embeddings that are not finite")
    return size, items, largest


def _can_fuse(key: Key) -> bool:
    name, *numbers = key
    if name == "logsum":
        return bool(numbers[0] >= triton_fit.LEAST_BETA)
    return bool(key == ("winners", 1) or (name == "best" and numbers[1] <= triton_fit.MOST_KEPT))


def fuse(
    torch: Any, rows: Any, items: Any, wanted: set[Key], device: Any, precision: MatmulPrecision
) -> tuple[dict[Key, Statistic], float]:
    """The statistics of the fused pass; none where the embeddings may be too large for it, or not finite."""
    if rows.dtype != items.dtype:
        rows, items = rows.float(), items.float()
    size, count = len(rows), len(items)
    betas = sorted(key[1] for key in wanted if key[0] == "logsum")
    lists = sorted(key for key in wanted if key[0] == "best")
    widths = [max(key[2] for key in lists)] if lists else []
    statistics: dict[Key, Statistic] = {}
    max_abs = 0.0
    # One pass, unless there are several β.
    for beta, width in zip_longest(betas or [None], widths):
        request = triton_fit.FusedRequest(beta, width or 0)
        result = triton_fit.run_fused(torch, rows, items, device, request, precision)
        if not result.max_abs <= LARGEST:
            return {}, 0.0
        max_abs = result.max_abs
        if beta is not None:
            statistics["logsum", beta] = LogSumExp(beta, size, result.shift, result.total, result.total)
        if ("winners", 1) in wanted and ("winners", 1) not in statistics:
            statistics["winners", 1] = ActivationSet(
                1, count, to_numpy(result.ids)[:, None], to_numpy(result.scores)[:, None]
            )
        if width:
            values, floor = result.values, result.floor
            for name, k, wide in lists:
                rest = floor if wide == width else values[:, wide].copy()
                top = values if wide == width else values[:, :wide].copy()
                statistics[name, k, wide] = TopK(k, size, top, rest)
    return statistics, max_abs
