"""Captions to one vector: word vectors or a network over token numbers, then pooling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wordreel.errors import NextStep, WeightsMissing
from wordreel.lab.models.batch import masked_max, masked_mean, unit
from wordreel.lab.models.config import TextConfig
from wordreel.lab.models.layers.expert_pooling import NetVLAD
from wordreel.lab.models.text.bert import Bert, Gpt
from wordreel.models.laboratory import Mode


def library() -> Any:
    """Import transformers, or say how to install it."""
    try:
        import transformers  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise WeightsMissing(
            "Hugging Face encoders need the transformers library", NextStep("run: pip install transformers")
        ) from None
    return transformers


class HuggingFace(nn.Module):
    """`ids [q, t]` and `mask [q, t]` to the last hidden states `[q, t, dim]`.

    `name` is a folder or a name in the local cache; nothing is downloaded. Of a network that reads and writes
    (T5) only the part that reads is used.
    """

    def __init__(self, name: str, dim: int) -> None:
        super().__init__()
        self.network = library().AutoModel.from_pretrained(name, local_files_only=True)
        hidden = getattr(self.network.config, "hidden_size", dim)
        if hidden != dim:
            raise ValueError(f"{name} has hidden states of {hidden} numbers; the configuration says {dim}")
        if getattr(self.network.config, "is_encoder_decoder", False):
            self.network = self.network.get_encoder()

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.network(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return states


class CaptionEncoder(nn.Module):
    """`tokens [q, t]` or `[q, t, d]` and `mask [q, t]` to `[q, text.out]`.

    Released: padding takes part in NetVLAD and in the mean and maximum over a BERT's tokens, as published.
    """

    def __init__(self, text: TextConfig, words: nn.Module | None, released: bool) -> None:
        super().__init__()
        self.text, self.released = text, released
        self.words = words
        self.vlad = NetVLAD(text.word_dim, text.clusters, text.ghosts) if text.pool == "vlad" else None
        self.lstm = Lstm(text.word_dim, text.lstm) if text.pool == "lstm" else None
        over_network = text.words == "bert" and text.pool in ("max", "mean")
        self.hears_padding = released and (text.pool == "vlad" or over_network)
        if words is not None:
            freeze(words, text)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        most = self.text.max_tokens
        if most and tokens.shape[1] > most:
            tokens, mask = tokens[:, :most], mask[:, :most]
        if self.hears_padding and tokens.shape[1] < most:
            # The published tensors always have max_tokens rows, and the pools see the empty ones.
            missing = most - tokens.shape[1]
            tokens = torch.cat((tokens, tokens.new_zeros(tokens.shape[0], missing, *tokens.shape[2:])), dim=1)
            mask = nn.functional.pad(mask, (0, missing))
        return self._pool(self._vectors(tokens, mask), mask)

    def _vectors(self, tokens: Tensor, mask: Tensor) -> Tensor:
        if self.words is None or tokens.is_floating_point():  # ready vectors, or a frozen network's states
            return torch.where(mask[:, :, None], tokens, 0)
        if isinstance(self.words, nn.Embedding):
            vectors: Tensor = self.words(torch.where(mask, tokens, 0))
        else:
            vectors = self.words(torch.where(mask, tokens, 0), mask)
            if isinstance(self.words, Gpt):  # published as features, whose padding is zero
                vectors = torch.where(mask[:, :, None], vectors, 0)
        return vectors

    def _pool(self, x: Tensor, mask: Tensor) -> Tensor:
        if self.vlad is not None:
            pooled: Tensor = self.vlad(x, None if self.released else mask)
        elif self.lstm is not None:
            pooled = self.lstm(x, mask)
        elif self.text.pool == "sentence":
            pooled = unit(masked_mean(x, mask).float())
        elif self.text.pool == "cls":
            pooled = x[:, 0]
        elif self.text.words == "bert":
            # Over what follows [CLS]; the published code lets padding take part.
            real = torch.ones_like(mask) if self.released else mask
            pool = masked_max if self.text.pool == "max" else masked_mean
            pooled = pool(x[:, 1:], real[:, 1:])
        else:
            pooled = (masked_max if self.text.pool == "max" else masked_mean)(x, mask)
        return pooled


class Lstm(nn.Module):
    """The last hidden state of one LSTM layer over the real tokens, then a linear layer."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        # Padding stands at the end and an LSTM never looks ahead, so the state at the last real token is the
        # one a packed sequence would end in, at a fixed shape.
        states, _ = self.lstm(torch.where(mask[:, :, None], x, 0))
        last = (mask.sum(dim=1) - 1).clamp(min=0)[:, None, None].expand(-1, 1, states.shape[2])
        y: Tensor = self.fc(states.gather(1, last)[:, 0])
        return y


def caption_encoder(text: TextConfig, mode: Mode = "paper") -> CaptionEncoder:
    """Return the encoder that a configuration describes, with its first weights."""
    return CaptionEncoder(text, word_network(text), mode == "released")


def word_network(text: TextConfig) -> nn.Module | None:
    """Return the network that embeds words; None where words are ready vectors."""
    if text.words == "vectors":
        return None
    if text.words == "table":
        return nn.Embedding(text.vocabulary, text.dim, padding_idx=0)
    if text.words == "huggingface":
        return HuggingFace(text.source, text.word_dim)
    assert text.network is not None  # noqa: S101 - Text has checked it
    return Bert(text.network) if text.words == "bert" else Gpt(text.network, second=text.words == "gpt2")


def freeze(words: nn.Module, text: TextConfig) -> None:
    """Keep the network as it is, or its first `frozen_layers` layers, embeddings included, or those alone."""
    if text.frozen:
        words.requires_grad_(False)
    elif text.frozen_embeddings and not text.frozen_layers:
        if not isinstance(words, Bert):
            raise ValueError(f"embeddings of {text.words!r} cannot be frozen alone; freeze the whole encoder")
        words.embeddings.requires_grad_(False)
    elif text.frozen_layers:
        layers = (
            words.encoder.layer if isinstance(words, Bert) else words.h if isinstance(words, Gpt) else None
        )
        if layers is None:
            raise ValueError(
                f"layers of {text.words!r} cannot be frozen one by one; freeze the whole encoder"
            )
        for name, child in words.named_children():
            if name not in ("encoder", "h"):
                child.requires_grad_(False)
        for layer in list(layers)[: text.frozen_layers]:
            layer.requires_grad_(False)
