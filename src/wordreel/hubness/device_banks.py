"""Banks whose similarities to a gallery come in blocks on a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wordreel.hubness.accumulate import check_bank_shape, stream_of
from wordreel.hubness.blocks import Similarities, SimilaritySource, as_source, matrix
from wordreel.hubness.embeddings import MixtureSource, ProductSource

BLOCK = 1 << 26  # similarities in a block


class DeviceBank(Protocol):
    """A bank whose similarities to the gallery come in blocks on a device."""

    def blocks(self, torch: Any, device: str) -> Iterator[Any]:
        """`[some queries, items]` float32 tensors on the device, in order."""
        ...


@dataclass(frozen=True)
class EmbeddingBank:
    """Inner products of two sets of embeddings, tensors wherever they are."""

    rows: Any  # [m, d]
    items: Any  # [n, d]

    def blocks(self, torch: Any, device: str) -> Iterator[Any]:
        rows, items = self.rows.to(device), self.items.to(device).float().T
        step = max(1, BLOCK // items.shape[1])
        for start in range(0, len(rows), step):
            yield rows[start : start + step].float() @ items


@dataclass(frozen=True)
class MixtureBank:
    """Mixture-of-experts similarities: one product divided by another, as in `models.similarity`."""

    source: MixtureSource

    def blocks(self, torch: Any, device: str) -> Iterator[Any]:
        source = self.source
        queries, weights, items, available = (
            torch.from_numpy(np.array(array, np.float32)).to(device)
            for array in (source.queries, source.weights, source.items, source.available)
        )
        step = max(1, BLOCK // len(items))
        for start in range(0, len(queries), step):
            own = weights[start : start + step]
            top = (queries[start : start + step] * own[:, :, None]).flatten(1) @ items.T
            bottom = own @ available.T
            yield torch.where(bottom > 0, top / bottom.clamp_min(torch.finfo(torch.float32).tiny), 0.0)


@dataclass(frozen=True)
class MatrixBank:
    """Similarities that are read: an array, perhaps memory-mapped, or any other source."""

    source: SimilaritySource

    def blocks(self, torch: Any, device: str) -> Iterator[Any]:
        rows, items = self.source.shape
        step = max(1, BLOCK // items)
        for start in range(0, rows, step):
            block = np.array(self.source.read(start, min(start + step, rows)), np.float32)
            yield torch.from_numpy(block).to(device)


@dataclass(frozen=True)
class StreamBank:
    """Row blocks that are read once."""

    stream: Similarities

    def blocks(self, torch: Any, device: str) -> Iterator[Any]:
        items: int | None = None
        for rows in stream_of(self.stream):
            rows = matrix(rows, "a block of the bank", items)
            items = rows.shape[1]
            yield torch.from_numpy(np.array(rows, np.float32)).to(device)


def device_bank(torch: Any, blocks: Similarities) -> DeviceBank:
    """The bank that reads some similarities as they come."""
    source = as_source(blocks)
    if source is None:
        return StreamBank(blocks)
    check_bank_shape(source.shape)
    if isinstance(source, ProductSource):
        return EmbeddingBank(as_tensor(torch, source.queries), as_tensor(torch, source.items))
    if isinstance(source, MixtureSource):
        if source.queries.shape[1] == 1 and source.available.all() and (source.weights > 0).all():
            return EmbeddingBank(as_tensor(torch, source.queries[:, 0]), as_tensor(torch, source.items))
        return MixtureBank(source)
    return MatrixBank(source)


def as_tensor(torch: Any, vectors: Any) -> Any:
    """A tensor where the vectors are, in a precision that can be multiplied."""
    if not torch.is_tensor(vectors):
        array = np.asarray(vectors)
        kind = array.dtype if array.dtype in (np.float16, np.float32) else np.float32
        array = np.ascontiguousarray(array, kind)
        # torch warns of arrays it could write to and must not; nothing here writes.
        vectors = torch.from_numpy(array if array.flags.writeable else array.copy())
    floats = (torch.float16, torch.bfloat16, torch.float32)
    return vectors if vectors.dtype in floats else vectors.to(torch.float32)
