"""Captions as word pieces on the device, and the sentence encoder that reads them.

Only the pieces that occur travel along, so captions and encoder fit into a small file.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from wordreel.atomic import atomic_write
from wordreel.models.config import MINILM
from wordreel.models.reel.checkpoint import from_small, to_small
from wordreel.models.text.bert import Bert
from wordreel.weights.store import WeightStore

LONGEST = 32  # word pieces of a caption that count in training
AT_ONCE = 1024
PLACES = 64  # of the position table that travel along


@dataclass(frozen=True, eq=False)
class Captions:
    """`ids [texts, LONGEST]` into the network's own table of pieces, and their `lengths [texts]`."""

    ids: Tensor
    lengths: Tensor
    network: Any  # Bert

    def to(self, device: torch.device) -> Captions:
        return replace(
            self,
            ids=self.ids.to(device),
            lengths=self.lengths.to(device),
            network=self.network.to(device).eval(),
        )

    def words(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Ids and mask of some captions, no longer than the longest of them; on a GPU always as long as any.

        There a shape that stays the same is worth more than a few words less.
        """
        lengths = self.lengths[rows]
        most = self.ids.shape[1] if rows.is_cuda else int(lengths.max())
        return self.ids[rows, :most], torch.arange(most, device=rows.device) < lengths[:, None]

    @torch.no_grad()
    def sentences(self, network: Any, rows: Tensor | None = None) -> Tensor:
        """Unit vectors `[texts, 384]` of some captions, or all."""
        network.eval()
        rows = torch.arange(len(self.ids), device=self.ids.device) if rows is None else rows
        made = [pooled(network, *self.words(rows[at : at + AT_ONCE])) for at in range(0, len(rows), AT_ONCE)]
        return torch.cat(made)

    def trainable(self) -> Any:
        """A copy of the network to train; the table of pieces and places stays as it is."""
        network = copy.deepcopy(self.network)
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name.startswith("encoder."))
        return network.train()


def pooled(network: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """The mean of the last layer over the words, as a unit vector."""
    states = network(ids, mask)
    shown = mask[:, :, None].to(states.dtype)
    return F.normalize(((states * shown).sum(1) / shown.sum(1)).float(), dim=-1)


def cut_short(ids: Tensor, mask: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Leave out words of some captions, so that a few keywords find what a sentence finds.

    Of a chosen caption each word stays with one half; the marks at both ends stay, and at least one word.
    """
    lengths = mask.sum(dim=1, keepdim=True)
    place = torch.arange(ids.shape[1], device=ids.device)
    inner = (place > 0) & (place < lengths - 1)
    chosen = torch.rand(len(ids), 1, device=ids.device) < share
    gone = inner & chosen & (torch.rand(ids.shape, device=ids.device) < 0.5)
    gone &= ~(gone == inner).all(dim=1, keepdim=True)  # never all of the words
    kept = mask & ~gone
    # Words that stay move together, so that their places are those of a short sentence.
    order = torch.sort((~kept).to(torch.uint8), dim=1, stable=True).indices
    return ids.gather(1, order), kept.gather(1, order)


def encode(texts: Sequence[str], store: WeightStore) -> Captions:
    """Tokenise captions and take the encoder from the weights of this machine."""
    from wordreel.models.text.minilm import minilm_weights
    from wordreel.nets.sentences import SentenceEncoder

    pieces = SentenceEncoder(store).pieces(texts, LONGEST)
    used = np.unique(np.concatenate([np.array(row) for row in pieces]))
    ids = np.zeros((len(texts), LONGEST), np.int64)
    lengths = np.array([len(row) for row in pieces])
    for row, found in enumerate(pieces):
        ids[row, : len(found)] = np.searchsorted(used, found)
    weights = minilm_weights(store)
    weights["embeddings.word_embeddings.weight"] = weights["embeddings.word_embeddings.weight"][used]
    weights["embeddings.position_embeddings.weight"] = weights["embeddings.position_embeddings.weight"][
        :PLACES
    ]
    return Captions(torch.from_numpy(ids), torch.from_numpy(lengths), _network(weights))


def save(path: Path, captions: Captions) -> None:
    """One safetensors file; the encoder's matrices as bytes with a scale per row."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, Any] = {
        "ids": captions.ids.numpy().astype(np.int16),
        "lengths": captions.lengths.numpy().astype(np.int8),
    }
    for name, value in captions.network.state_dict().items():
        array = value.detach().cpu().numpy()
        if array.ndim == 2 and name.startswith("encoder."):
            arrays[f"network.{name}"], arrays[f"scales.{name}"] = to_small(array)
        elif "pooler" not in name:
            arrays[f"network.{name}"] = array.astype(np.float16)
    atomic_write(path, to_bytes(arrays))


def load(path: Path) -> Captions:
    """Read what `save` wrote."""
    from safetensors.numpy import load_file

    held = load_file(path)
    weights: dict[str, Any] = {}
    for key, array in held.items():
        part, _, name = key.partition(".")
        if part == "network":
            scales = held.get(f"scales.{name}")
            weights[name] = array.astype(np.float32) if scales is None else from_small(array, scales)
    hidden = weights["embeddings.LayerNorm.weight"].shape[0]
    weights["pooler.dense.weight"] = np.zeros((hidden, hidden), np.float32)
    weights["pooler.dense.bias"] = np.zeros(hidden, np.float32)
    ids, lengths = held["ids"].astype(np.int64), held["lengths"].astype(np.int64)
    return Captions(torch.from_numpy(ids), torch.from_numpy(lengths), _network(weights))


def _network(weights: dict[str, Any]) -> Any:
    sizes = replace(
        MINILM,
        vocabulary=len(weights["embeddings.word_embeddings.weight"]),
        positions=len(weights["embeddings.position_embeddings.weight"]),
    )
    network = Bert(sizes)
    network.load_state_dict(
        {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in weights.items()}
    )
    return network.eval()
