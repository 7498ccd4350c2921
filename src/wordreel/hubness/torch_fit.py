"""Fit a method from embeddings on a GPU (or any device torch knows). torch is an optional extra.

The same statistics as `embeddings.fit_embeddings`, gathered on the device in one pass: a blocked float32
matrix product, and of each block, before the next one, the online log-sum-exp, the winners, the largest
values and the mean. Only those O(gallery + bank) numbers come back; the state that is returned is an ordinary
one. Memory on the device: the embeddings and a few blocks of 256 MB. Similarities differ from those of the
CPU in the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.best import Best
from wordreel.hubness.blocks import LARGEST, Array
from wordreel.hubness.embeddings import product
from wordreel.hubness.gather import warn_of_logits
from wordreel.hubness.logsum import LogSum
from wordreel.hubness.mean import Mean
from wordreel.hubness.method import Method
from wordreel.hubness.part import Part
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.winners import Winners

BLOCK = 1 << 26  # similarities in a block


def fit_embeddings_torch(
    method: Method, bank: Array, gallery: Array, extra: Array | None = None, *, device: str = "cuda"
) -> State:
    """Fit on a bank `[m, d]` and a gallery `[n, d]`; `extra [g, d]` is the gallery bank of dual methods."""
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise HubnessError("fitting on a GPU needs torch: pip install 'wordreel[train]'") from None
    if not method.streaming or method.name == "gc":
        raise HubnessError(f"{method.name!r} is not gathered in one pass; use fit_embeddings")
    given = {QUERIES: bank} | ({} if extra is None else {GALLERY: extra})
    if set(given) != set(method.banks):
        raise HubnessError(f"{method.name!r} is fitted with {' and '.join(method.banks)}, not {list(given)}")
    items = torch.as_tensor(np.asarray(gallery, np.float32), device=device)
    banks = {}
    for name, vectors in given.items():
        size, count = product(vectors, gallery).shape
        if 0 in (size, count):
            raise HubnessError("the bank and the gallery need at least one embedding each")
        rows = torch.as_tensor(np.asarray(vectors, np.float32), device=device)
        makers = {key: _maker(key, method, name) for key in method.builders(name)}
        reach = _pass(torch, rows, items, makers)
        warn_of_logits(reach, method.inverse_temperature(name))
        banks[name] = BankState(size, {key: maker.part(size) for key, maker in makers.items()})
    return State(method, len(gallery), banks)


def _pass(torch: Any, rows: Any, items: Any, makers: dict[str, Any]) -> float:
    """One product over all blocks; the largest absolute similarity."""
    step = max(1, BLOCK // len(items))
    reach = torch.zeros((), device=rows.device)
    with torch.inference_mode():
        for start in range(0, len(rows), step):
            block = rows[start : start + step] @ items.T
            # amax passes NaN on, and is read only once, at the end, so that the device never waits.
            reach = torch.maximum(reach, block.abs().amax())
            for maker in makers.values():
                maker.take(torch, block)
    found = float(reach)
    if not found <= LARGEST:
        raise HubnessError(f"a similarity is {found}; leave out or mend the embeddings that are not finite")
    return found


def _maker(key: str, method: Method, bank: str) -> Any:
    untyped: Any = method
    if key == "logsum":
        return _LogSum(method.inverse_temperature(bank))
    if key == "winners":
        return _Winners(untyped.k)
    return _Best(untyped.k, untyped.k + untyped.reserve) if key == "best" else _Mean()


class _LogSum:
    def __init__(self, beta: float) -> None:
        self.beta, self.shift, self.total = beta, None, None

    def take(self, torch: Any, block: Any) -> None:
        top = block.amax(0).double()
        shift: Any = top if self.shift is None else torch.maximum(self.shift, top)
        kind = torch.float64 if self.beta < 0.1 else torch.float32
        new = ((block - shift.float()).to(kind) * self.beta).exp_().sum(0, dtype=torch.float64)
        old: Any = 0 if self.shift is None else self.total * ((self.shift - shift) * self.beta).exp()
        self.shift, self.total = shift, old + new

    def part(self, size: int) -> Part:
        shift, total = _numpy(self.shift), _numpy(self.total)
        return LogSum(self.beta, size, shift, total, total)


class _Winners:
    def __init__(self, k: int) -> None:
        self.k, self.items = k, 0
        self.found: list[tuple[Any, Any]] = []

    def take(self, torch: Any, block: Any) -> None:
        self.items = block.shape[1]
        if self.k == 1:
            best = block.amax(1, keepdim=True)
            numbers = torch.arange(self.items, device=block.device)
            # argmax does not promise the first of equals on a GPU.
            ids = torch.where(block == best, numbers, self.items - 1).amin(1, keepdim=True)
        else:
            best, ids = block.sort(dim=1, descending=True, stable=True)
            best, ids = best[:, : self.k].clone(), ids[:, : self.k].clone()
        self.found.append((ids, best))

    def part(self, size: int) -> Part:
        ids, scores = (np.concatenate([_numpy(pair[i]) for pair in self.found]) for i in (0, 1))
        missing = ((0, 0), (0, self.k - ids.shape[1]))
        ids = np.pad(ids.astype(np.int32), missing, constant_values=-1)
        return Winners(self.k, self.items, ids, np.pad(scores, missing, constant_values=-np.inf))


class _Best:
    def __init__(self, k: int, width: int) -> None:
        self.k, self.width, self.kept, self.floor = k, width, None, None

    def take(self, torch: Any, block: Any) -> None:
        every: Any = block.T if self.kept is None else torch.cat([self.kept, block.T], dim=1)
        floor: Any = torch.full_like(every[:, 0], -torch.inf) if self.floor is None else self.floor
        top = every.topk(min(self.width + 1, every.shape[1]), dim=1).values
        if top.shape[1] > self.width:
            floor = torch.maximum(floor, top[:, self.width])
        self.kept, self.floor = top[:, : self.width].contiguous(), floor

    def part(self, size: int) -> Part:
        values = _numpy(self.kept)
        values = np.pad(values, ((0, 0), (0, self.width - values.shape[1])), constant_values=-np.inf)
        return Best(self.k, size, values, _numpy(self.floor))


class _Mean:
    def __init__(self) -> None:
        self.total: Any = 0

    def take(self, torch: Any, block: Any) -> None:
        self.total = self.total + block.sum(0, dtype=torch.float64)

    def part(self, size: int) -> Part:
        return Mean(size, _numpy(self.total))


def _numpy(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy())
