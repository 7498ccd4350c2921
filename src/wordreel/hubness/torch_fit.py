"""Fit methods on a GPU (or any device torch supports). torch is an optional extra.

The same statistics as `accumulate`, computed on the device in one pass over the similarities: those of
embeddings, of mixtures of experts, or of a matrix that is copied block by block. All statistics are taken
from a block before the next one is computed; only O(gallery + bank) numbers come back, as an ordinary state.
Similarities differ from those of the CPU in the last bits. Memory on the device: the embeddings in float32
and a few blocks of 256 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wordreel.errors import HubnessError, NextStep
from wordreel.hubness.accumulate import warn_if_logits
from wordreel.hubness.blocks import LARGEST, Similarities
from wordreel.hubness.device_banks import DeviceBank, EmbeddingBank, as_tensor, device_bank
from wordreel.hubness.method import Method
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.torch_statistics import Key, builder_of
from wordreel.types import Array


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
    return _fit(torch, methods, given, device)


def fit_embeddings_on_device(
    methods: Sequence[Method],
    bank: Array | Any,
    gallery: Array | Any,
    extra: Array | Any | None = None,
    *,
    device: str = "cuda",
) -> list[State]:
    """Fit several methods on embeddings in one pass on a GPU.

    Embeddings are arrays or tensors, of any kind of float; the products are float32.

    Args:
        methods: What to fit (`make_method`).
        bank: Embeddings of the bank queries, `[m, d]`.
        gallery: Embeddings of the gallery items, `[n, d]`.
        extra: Embeddings of the gallery bank, `[g, d]`, for the dual methods.
        device: A torch device.

    Returns:
        One state per method, as `fit_embeddings` returns it.

    Raises:
        HubnessError: The shapes do not fit, a similarity is not finite, a method has no GPU version, or
            torch is not installed.
    """
    torch = import_torch()
    items = as_tensor(torch, gallery)
    given: dict[str, DeviceBank] = {QUERIES: EmbeddingBank(as_tensor(torch, bank), items)}
    if extra is not None:
        given[GALLERY] = EmbeddingBank(as_tensor(torch, extra), items)
    for one in given.values():
        _check(one.rows, items)  # type: ignore[attr-defined]
    return _fit(torch, methods, given, device)


def import_torch() -> Any:
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError(
            "fitting on a GPU needs torch", NextStep("install it: pip install 'wordreel[train]'")
        ) from None
    return torch


def _fit(torch: Any, methods: Sequence[Method], given: Mapping[str, DeviceBank], device: str) -> list[State]:
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
            builders = {key: builder_of(key) for one in keys for key in one.values()}
            size, columns, max_abs = accumulate_blocks(torch, bank.blocks(torch, device), builders)
            if items and columns != items:
                raise HubnessError(f"the bank has {columns} columns but the gallery has {items} items")
            items = columns
            statistics = {key: builder.build(size) for key, builder in builders.items()}
            for number, (method, one) in enumerate(zip(methods, keys, strict=True)):
                warn_if_logits(max_abs, method.inverse_temperature(name))
                own = {key: statistics[statistic] for key, statistic in one.items()}
                banks[number][name] = BankState(size, own)
    return [State(method, items, own) for method, own in zip(methods, banks, strict=True)]


def _check(rows: Any, items: Any) -> None:
    if rows.ndim != 2 or items.ndim != 2 or rows.shape[1] != items.shape[1]:
        shapes = f"{tuple(rows.shape)} and {tuple(items.shape)}"
        raise HubnessError(f"embeddings are matrices [rows, dim] of one dim, not {shapes}")
    if 0 in (*rows.shape, *items.shape):
        raise HubnessError("the bank and the gallery need at least one embedding each")


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
