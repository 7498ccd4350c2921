"""Fit methods from embeddings on a GPU (or any device torch knows). torch is an optional extra.

The same statistics as `embeddings.fit_embeddings`, gathered on the device in one pass. On an NVIDIA GPU with
Triton, which comes with torch there, that pass is fused (`triton_fit`): log-sum-exp, winners and up to 31
largest values are taken from similarities that never reach memory. Everything else, and every other device,
goes block by block: a float32 matrix product, and of each block, before the next one, all statistics. Only
O(gallery + bank) numbers come back; the state that is returned is an ordinary one. Similarities differ from
those of the CPU in the last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness import torch_blocks, triton_fit
from wordreel.hubness.accumulate import warn_if_logits
from wordreel.hubness.activation_set import ActivationSet
from wordreel.hubness.blocks import LARGEST, Array
from wordreel.hubness.log_sum_exp import LogSumExp
from wordreel.hubness.method import Method
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.statistic import Statistic
from wordreel.hubness.top_k import TopK
from wordreel.hubness.torch_blocks import Key, to_numpy

WORTH = 1 << 28  # similarities from which on the fused pass repays being compiled

Precision = Literal["full", "tf32"]


def fit_embeddings_torch(
    method: Method,
    bank: Array | Any,
    gallery: Array | Any,
    extra: Array | Any | None = None,
    *,
    device: str = "cuda",
    precision: Precision = "full",
) -> State:
    """Fit on a bank `[m, d]` and a gallery `[n, d]`; `extra [g, d]` is the gallery bank of dual methods."""
    return fit_many_torch([method], bank, gallery, extra, device=device, precision=precision)[0]


def fit_many_torch(
    methods: Sequence[Method],
    bank: Array | Any,
    gallery: Array | Any,
    extra: Array | Any | None = None,
    *,
    device: str = "cuda",
    precision: Precision = "full",
) -> list[State]:
    """Fit several methods in one pass over the product; a state for each.

    Embeddings are arrays or tensors, of float16, bfloat16 or float32 (others become float32). A gallery in
    main memory is brought to the device in pieces. `precision="tf32"` lets the fused pass round float32
    embeddings to 11 bits, over three times as fast; half-precision ones are multiplied exactly either way.
    """
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError("fitting on a GPU needs torch: pip install 'wordreel[train]'") from None
    given = {QUERIES: bank} | ({} if extra is None else {GALLERY: extra})
    for method in methods:
        if not method.streaming or method.name == "gc":
            raise HubnessError(f"{method.name!r} is not gathered in one pass; use fit_embeddings")
        if set(given) != set(method.banks):
            raise HubnessError(
                f"{method.name!r} is fitted with {' and '.join(method.banks)}, not {list(given)}"
            )
    if precision not in ("full", "tf32"):
        raise HubnessError(f"precision is 'full' or 'tf32', not {precision!r}")
    items = _tensor(torch, gallery)
    banks: list[dict[str, BankState]] = [{} for _ in methods]
    with torch.inference_mode():
        for name, vectors in given.items():
            rows = _tensor(torch, vectors)
            _check(rows, items)
            keys = [{key: _key(key, method, name) for key in method.builders(name)} for method in methods]
            wanted = {key for one in keys for key in one.values()}
            parts, max_abs = _gather(torch, rows, items, wanted, device, precision)
            for place, (method, one) in enumerate(zip(methods, keys, strict=True)):
                warn_if_logits(max_abs, method.inverse_temperature(name))
                own = {key: parts[statistic] for key, statistic in one.items()}
                banks[place][name] = BankState(len(rows), own)
    return [State(method, len(items), found) for method, found in zip(methods, banks, strict=True)]


def _tensor(torch: Any, vectors: Any) -> Any:
    """A tensor where the vectors are, in a precision that can be multiplied."""
    if not torch.is_tensor(vectors):
        array = np.asarray(vectors)
        kind = array.dtype if array.dtype in (np.float16, np.float32) else np.float32
        array = np.ascontiguousarray(array, kind)
        # torch warns of arrays it could write to and must not; nothing here writes.
        vectors = torch.from_numpy(array if array.flags.writeable else array.copy())
    kept = (torch.float16, torch.bfloat16, torch.float32)
    return vectors if vectors.dtype in kept else vectors.to(torch.float32)


def _check(rows: Any, items: Any) -> None:
    if rows.ndim != 2 or items.ndim != 2 or rows.shape[1] != items.shape[1]:
        shapes = f"{tuple(rows.shape)} and {tuple(items.shape)}"
        raise HubnessError(f"embeddings are matrices [rows, dim] of one dim, not {shapes}")
    if 0 in (*rows.shape, *items.shape):
        raise HubnessError("the bank and the gallery need at least one embedding each")


def _key(key: str, method: Method, bank: str) -> Key:
    untyped: Any = method
    if key == "logsum":
        return key, method.inverse_temperature(bank)
    if key == "winners":
        return key, untyped.k
    return (key, untyped.k, untyped.k + untyped.reserve) if key == "best" else (key,)


def _gather(
    torch: Any, rows: Any, items: Any, wanted: set[Key], device: str, precision: Precision
) -> tuple[dict[Key, Statistic], float]:
    """Every wanted part of one bank, and the largest absolute similarity."""
    parts: dict[Key, Statistic] = {}
    max_abs = 0.0
    fused = {key for key in wanted if _can_fuse(key)}
    if fused and len(rows) * len(items) >= WORTH and triton_fit.available(torch, device):
        parts, max_abs = fuse(torch, rows, items, fused, device, precision)
    left = wanted - set(parts)
    if left or not parts:
        makers = {key: torch_blocks.maker_of(key) for key in sorted(left, key=str)}
        max_abs = max(max_abs, torch_blocks.gather(torch, rows.to(device), items.to(device), makers))
        parts |= {key: maker.build(len(rows)) for key, maker in makers.items()}
    return parts, max_abs


def _can_fuse(key: Key) -> bool:
    name, *numbers = key
    if name == "logsum":
        return bool(numbers[0] >= triton_fit.LEAST_BETA)
    return bool(key == ("winners", 1) or (name == "best" and numbers[1] <= triton_fit.MOST_KEPT))


def fuse(
    torch: Any, rows: Any, items: Any, wanted: set[Key], device: Any, precision: Precision
) -> tuple[dict[Key, Statistic], float]:
    """The parts of the fused pass; none where the embeddings may be too large for it, or not finite."""
    if rows.dtype != items.dtype:
        rows, items = rows.float(), items.float()
    size, count = len(rows), len(items)
    betas = sorted(key[1] for key in wanted if key[0] == "logsum")
    lists = sorted(key for key in wanted if key[0] == "best")
    widths = [max(key[2] for key in lists)] if lists else []
    parts: dict[Key, Statistic] = {}
    max_abs = 0.0
    # One pass, unless there are several β.
    for beta, width in zip_longest(betas or [None], widths):
        asked = triton_fit.FusedRequest(beta, width or 0)
        found = triton_fit.gather(torch, rows, items, device, asked, precision)
        if not found.max_abs <= LARGEST:
            return {}, 0.0
        max_abs = found.max_abs
        if beta is not None:
            parts["logsum", beta] = LogSumExp(beta, size, found.shift, found.total, found.total)
        if ("winners", 1) in wanted and ("winners", 1) not in parts:
            parts["winners", 1] = ActivationSet(
                1, count, to_numpy(found.ids)[:, None], to_numpy(found.scores)[:, None]
            )
        if width:
            values, floor = found.values, found.floor
            for name, k, wide in lists:
                rest = floor if wide == width else values[:, wide].copy()
                kept = values if wide == width else values[:, :wide].copy()
                parts[name, k, wide] = TopK(k, size, kept, rest)
    return parts, max_abs
