"""A dataset's captions as tensors, encoded once: token numbers, word vectors or a frozen network's states."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wordreel.errors import TrainingError
from wordreel.lab.models.batch import JointEmbedding, TokenBatch
from wordreel.lab.models.config import TextConfig
from wordreel.lab.models.text.tokenizers import CaptionTokenizer
from wordreel.lab.training.data.packed import Packed, StoredRows, device_for, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Int64
from wordreel.util.atomic import atomic_write, make_dir

BATCH = 512
CACHE_VERSION = 1


class CaptionStore:
    """`batch(captions)` gives tokens of the captions with these numbers, in the order of `Pairs.texts`.

    `middles [captions]` are the seconds that captions are about, NaN where that is all of the video.
    """

    def __init__(
        self, packed: Packed, device: torch.device, fixed: int = 0, middles: NDArray[np.float32] | None = None
    ) -> None:
        self.device, self.fixed = device, fixed
        self.middles = None if middles is None else torch.from_numpy(middles).to(device)
        self.storage_device = device_for(4 * packed.values.size, device)
        self.stored = StoredRows(packed, device, self.storage_device)
        self.host_counts: Int64 = packed.counts

    def __len__(self) -> int:
        return len(self.host_counts)

    def sample(self, captions: Tensor) -> tuple[TokenBatch, Tensor | None]:
        """Return a batch for a step, and the seconds that its captions are about."""
        middles = None if self.middles is None else self.middles[captions.to(self.middles.device)]
        return self.batch(captions), middles

    def batch(self, captions: Tensor, width: int = 0) -> TokenBatch:
        """Batch tokens of these captions, padded to `width`, or to the longest of them."""
        numbers = captions.to(self.storage_device)
        width = max(1, width or self.fixed or self.stored.most(numbers))
        rows, mask = self.stored.rows(numbers, torch.arange(width, device=numbers.device))
        values = self.stored.gather(rows)
        if not values.is_floating_point():
            values = values.long()
        return TokenBatch(values.to(self.device, non_blocking=True), mask.to(self.device, non_blocking=True))


def encode(
    pairs: Pairs,
    text: TextConfig,
    source: CaptionTokenizer | None,
    on_progress: ProgressCallback | None = None,
    cache: Path | None = None,
) -> Packed:
    """Return every caption's tokens: the ready word features of the pairs, or what the source makes of them.

    Captions that occur several times are encoded once. `cache` is a folder where the next run finds them.
    """
    if pairs.words is not None:
        if text.words != "vectors":
            raise TrainingError(f"{pairs.name} has word vectors, and the model takes {text.words}")
        rows = [word[: text.max_tokens or None] for words in pairs.words for word in words]
        wrong = {row.shape[1] for row in rows} - {text.dim}
        if wrong:
            raise TrainingError(
                f"word features have {sorted(wrong)} numbers, the recipe says {text.dim}: set model.text.dim"
            )
        return pack(rows, like=np.zeros((0, text.dim), np.float32))
    if source is None:
        raise TrainingError(f"captions of {pairs.name} are text, and nothing encodes them")
    texts = pairs.texts
    path = None
    if cache is not None:
        content = f"{CACHE_VERSION} {source.fingerprint} {text}" + "\x1f".join(texts)
        path = cache / f"{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()[:32]}.safetensors"
        if (cached := _read_cache(path)) is not None:
            return cached
    numbers: dict[str, int] = {}
    for caption in texts:
        numbers.setdefault(caption, len(numbers))
    encoded = _encode_texts(list(numbers), source, on_progress)
    packed = pack([encoded[numbers[caption]] for caption in texts])
    if path is not None:
        from safetensors.numpy import save

        with suppress(OSError):  # a full or foreign disk: the next run encodes again
            make_dir(path.parent)
            tensors = {"values": np.ascontiguousarray(packed.values), "counts": packed.counts}
            atomic_write(path, save(tensors))
    return packed


def _read_cache(path: Path) -> Packed | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
        return Packed(tensors["values"], tensors["counts"])
    except (SafetensorError, KeyError, OSError):
        return None  # none, cut short or damaged: encoded again


def _encode_texts(
    texts: list[str], source: CaptionTokenizer, on_progress: ProgressCallback | None
) -> list[NDArray[Any]]:
    """Tokens of each text. Vectors are stored in float16, which is precise enough for training."""
    rows: list[NDArray[Any]] = []
    for start in range(0, len(texts), BATCH):
        tokens, mask = source.encode(texts[start : start + BATCH])
        tokens = tokens.astype(np.float16) if tokens.dtype.kind == "f" else tokens
        rows += [row[keep] for row, keep in zip(tokens, mask, strict=True)]
        if on_progress:
            on_progress(Progress("encoding captions", min(start + BATCH, len(texts)), len(texts)))
    return rows


def frozen_states(module: JointEmbedding, packed: Packed, text: TextConfig, device: torch.device) -> Packed:
    """Return a frozen text network's states of all captions, so that no step has to: `[tokens, hidden]` each.

    With "cls" pooling only the first state is stored. A frozen network runs without dropout.
    """
    network = module.get_submodule("caption.words")
    was = network.training
    result = states(network.eval(), packed, device, first=text.pool == "cls")
    network.train(was)
    return result


def states(
    network: nn.Module, packed: Packed, device: torch.device, first: bool = False, batch: int = 256
) -> Packed:
    """Return hidden states of every caption, or only of its first token; equal lengths go together."""
    store = CaptionStore(packed, device)
    order = np.argsort(packed.counts, kind="stable")
    rows: list[NDArray[Any]] = [np.zeros((0, 0), np.float32)] * len(packed)
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        tokens = store.batch(torch.from_numpy(some), int(packed.counts[some].max()))
        with torch.inference_mode():
            hidden = network(tokens.tokens, tokens.mask).float().cpu().numpy()
        for row, number in enumerate(some):
            rows[number] = hidden[row, : 1 if first else int(packed.counts[number])].copy()
    return pack(rows)


def is_frozen(text: TextConfig) -> bool:
    """Return whether a network over tokens never changes."""
    return text.frozen and text.words in ("bert", "gpt", "gpt2", "huggingface")
