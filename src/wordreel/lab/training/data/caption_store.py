"""A dataset's captions as tensors, encoded once: token numbers, word vectors or a frozen network's states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wordreel.errors import TrainingError
from wordreel.lab.models.batch import JointEmbedding, TokenBatch, masked_mean, unit
from wordreel.lab.models.config import MINILM, TextConfig
from wordreel.lab.models.text.tokenizers import CaptionTokenizer
from wordreel.lab.training.data.device_memory import device_for
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Int64

BATCH = 512


class CaptionStore:
    """`batch(captions)` gives tokens of the captions with these numbers, in the order of `Pairs.texts`.

    `middles [captions]` are the seconds that captions are about, NaN where that is all of the video.
    `as_float32` hands out float32, whatever the storage's type.
    """

    def __init__(
        self,
        packed: Packed,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        fixed: int = 0,
        middles: NDArray[np.float32] | None = None,
        as_float32: bool = False,
    ) -> None:
        self.device, self.fixed = device, fixed
        self.as_float32 = as_float32
        self.middles = None if middles is None else torch.from_numpy(middles).to(device)
        values = packed.values
        is_integer = values.dtype.kind in "iu"
        tensor = torch.from_numpy(np.concatenate([values, np.zeros((1, *values.shape[1:]), values.dtype)]))
        tensor = tensor.to(torch.int32 if is_integer else dtype)
        self.storage_device = device_for(tensor.numel() * tensor.element_size(), device)
        pinned = self.storage_device != device and device.type == "cuda"
        self.values = tensor.pin_memory() if pinned else tensor.to(self.storage_device)
        self.is_integer, self.longest = is_integer, packed.longest
        self.starts = torch.from_numpy(packed.starts).to(self.storage_device)
        self.counts = torch.from_numpy(packed.counts).to(self.storage_device)
        self.host_counts: Int64 = packed.counts

    def __len__(self) -> int:
        return len(self.host_counts)

    def sample(self, captions: Tensor) -> tuple[TokenBatch, Tensor | None]:
        """A batch for a step, and the seconds that its captions are about."""
        middles = None if self.middles is None else self.middles[captions.to(self.middles.device)]
        return self.batch(captions), middles

    def batch(self, captions: Tensor, width: int = 0) -> TokenBatch:
        """Tokens of these captions, padded to `width`, or to the longest of them."""
        numbers = captions.to(self.storage_device)
        longest = self.longest
        if not self.fixed and not width and numbers.device.type == "cpu":
            longest = int(self.host_counts[numbers.numpy()].max(initial=0))
        width = max(1, width or self.fixed or longest)
        positions = torch.arange(width, device=numbers.device)
        mask = positions < self.counts[numbers][:, None]
        rows = torch.where(mask, self.starts[numbers][:, None] + positions, len(self.values) - 1)
        values = self.values.index_select(0, rows.flatten()).view(*rows.shape, *self.values.shape[1:])
        if self.is_integer:
            values = values.long()
        elif self.as_float32:
            values = values.float()
        return TokenBatch(values.to(self.device, non_blocking=True), mask.to(self.device, non_blocking=True))


def encode(
    pairs: Pairs,
    text: TextConfig,
    source: CaptionTokenizer | None,
    on_progress: ProgressCallback | None = None,
    device: torch.device | None = None,
) -> Packed:
    """Every caption's tokens: the ready word features of the pairs, or what the source makes of the texts.

    Captions that occur several times are encoded once.
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
    first: dict[str, int] = {}
    for one in pairs.texts:
        first.setdefault(one, len(first))
    encoded = encode_texts(list(first), text, source, device, on_progress)
    return pack([encoded[first[one]] for one in pairs.texts])


def encode_texts(
    texts: list[str],
    text: TextConfig,
    source: CaptionTokenizer,
    device: torch.device | None = None,
    on_progress: ProgressCallback | None = None,
) -> list[NDArray[Any]]:
    """Tokens of each text. Vectors are stored in float16, which is precise enough for training.

    The embedded sentence encoder runs on the device, where it is much faster.
    """
    if text.source == "minilm" and text.words == "vectors" and device is not None and device.type == "cuda":
        return _on_device(texts, text, device)
    rows: list[NDArray[Any]] = []
    for start in range(0, len(texts), BATCH):
        tokens, mask = source.encode(texts[start : start + BATCH])
        tokens = tokens.astype(np.float16) if tokens.dtype.kind == "f" else tokens
        rows += [row[keep] for row, keep in zip(tokens, mask, strict=True)]
        if on_progress:
            on_progress(Progress("encoding captions", min(start + BATCH, len(texts)), len(texts)))
    return rows


def _on_device(texts: list[str], text: TextConfig, device: torch.device) -> list[NDArray[Any]]:
    from wordreel.lab.models.text.pretrained import minilm_network
    from wordreel.lab.models.text.tokenizers import open_tokenizer

    numbers = open_tokenizer(replace(text, words="bert", pool="mean", network=MINILM))
    tokens, mask = numbers.encode(texts)
    packed = pack([row[keep] for row, keep in zip(tokens, mask, strict=True)])
    vectors = states(minilm_network().to(device), packed, device)
    return [vectors.item(number).astype(np.float16) for number in range(len(vectors))]


def frozen_states(module: JointEmbedding, packed: Packed, text: TextConfig, device: torch.device) -> Packed:
    """What a frozen text network makes of all captions, so that no step has to: `[tokens, hidden]` each.

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
    """Hidden states of every caption, or only of its first token; captions of one length go together."""
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


@torch.inference_mode()
def sentence_vectors(network: nn.Module, packed: Packed, device: torch.device, batch: int = 1024) -> Tensor:
    """Unit vectors `[captions, hidden]`: the mean of the last layer over a caption's tokens."""
    store = CaptionStore(packed, device)
    order = np.argsort(packed.counts, kind="stable")
    parts = []
    for start in range(0, len(order), batch):
        some = order[start : start + batch]
        tokens = store.batch(torch.from_numpy(some), int(packed.counts[some].max()))
        parts.append(unit(masked_mean(network(*tokens), tokens.mask).float()))
    back = torch.from_numpy(np.argsort(order, kind="stable")).to(device)
    return torch.cat(parts)[back]


def shorten(tokens: TokenBatch, chance: float) -> TokenBatch:
    """Leave words out of some captions, so that a few keywords find what a sentence finds.

    Of a chosen caption each word stays with one half; the marks at both ends stay, and at least one word.
    """
    ids, mask = tokens
    position = torch.arange(ids.shape[1], device=ids.device)
    inner = (position > 0) & (position < mask.sum(dim=1, keepdim=True) - 1)
    chosen = torch.rand(len(ids), 1, device=ids.device) < chance
    gone = inner & chosen & (torch.rand(ids.shape, device=ids.device) < 0.5)
    gone = gone & ~(gone == inner).all(dim=1, keepdim=True)  # never all of the words
    stays = mask & ~gone
    # Words that stay move together, so that their positions are those of a short sentence.
    order = torch.sort((~stays).to(torch.uint8), dim=1, stable=True).indices
    return TokenBatch(ids.gather(1, order), stays.gather(1, order))


def is_frozen(text: TextConfig) -> bool:
    """Whether a network over tokens never changes."""
    return text.frozen and text.words in ("bert", "gpt", "gpt2", "huggingface")
