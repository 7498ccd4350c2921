"""Train the text tower and the adapter: captions meet the pictures they describe.

    t = unit(H mean(BERT(caption)) + h),   v = unit(A mean(rows) + a)
    loss = CE(e^τ t vᵀ, same picture) over rows and over columns, shared by captions of one picture

H starts as the ridge regression from the sentence encoder's vectors to the pictures', A as the identity.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize
from tower_material import Item, Material

from wordreel.lab.models.text.bert import Bert
from wordreel.types import Float32

DIM = 512
MICRO = 128  # captions of about one length that run together
RIDGE = 4000  # captions that the head starts from
WARM_UP = 40  # steps
VIDEO_ROWS = 3  # frames of a video that a step sees
DECAY = 0.02
HEAD_RATE = 2.0  # learning rate of head and adapter, relative
TEMPERATURE = 20.0  # e^τ at the start


@dataclass(frozen=True)
class Settings:
    """How long and how fast to train; `minutes` ends a run whose `steps` are not done by then."""

    steps: int = 800
    batch: int = 1024
    lr: float = 3e-4
    seed: int = 0
    minutes: float = 1e9

    def done(self, step: int, started: float) -> float:
        """Return the share of the training that is done, by steps or by time, whichever is further."""
        return max(step / self.steps, (time.monotonic() - started) / (60 * self.minutes))

    @staticmethod
    def rate(step: int, done: float) -> float:
        """Return the share of the learning rates at a step: a warm-up, then half a cosine."""
        return float(min(1, (step + 1) / WARM_UP) * (0.51 + 0.49 * np.cos(np.pi * done)))


class Tower(nn.Module):
    """The text network, its head, and the adapter of the pictures."""

    def __init__(self, network: Bert) -> None:
        super().__init__()
        self.network = network
        self.head = nn.Linear(network.embeddings.word_embeddings.embedding_dim, DIM)
        self.adapter = nn.Linear(DIM, DIM)
        self.scale = nn.Parameter(torch.tensor(np.log(TEMPERATURE), dtype=torch.float32))
        nn.init.eye_(self.adapter.weight)
        nn.init.zeros_(self.adapter.bias)

    def sentence(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the mean state `[n, 384]` over the tokens of each text."""
        states = self.network(ids, mask).float()
        real = mask[..., None].float()
        return (states * real).sum(1) / real.sum(1)

    def text(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return unit vectors `[n, 512]`."""
        return normalize(self.head(self.sentence(ids, mask)), dim=1)

    def seen(self, rows: Tensor) -> Tensor:
        """Return unit vectors `[n, 512]` of means of rows."""
        return normalize(self.adapter(rows), dim=1)


@dataclass
class Batches:
    """Captions in random order, each once before any comes again, with the rows of their items."""

    items: Sequence[Item]
    tokens: Sequence[Sequence[list[int]]]
    size: int
    rng: np.random.Generator
    _left: list[tuple[int, int]] = field(default_factory=list)

    def __next__(self) -> tuple[Tensor, list[list[int]], Tensor]:
        """Return the items' numbers, their captions' tokens, and means of rows `[batch, 512]`."""
        if len(self._left) < self.size:
            pairs = [(i, j) for i, captions in enumerate(self.tokens) for j in range(len(captions))]
            self._left = [pairs[k] for k in self.rng.permutation(len(pairs))]
        chosen, self._left = self._left[: self.size], self._left[self.size :]
        rows = np.stack([self._mean(self.items[i].rows) for i, _ in chosen])
        return (
            torch.tensor([i for i, _ in chosen]),
            [self.tokens[i][j] for i, j in chosen],
            torch.from_numpy(rows),
        )

    def _mean(self, rows: Float32) -> Float32:
        if len(rows) > VIDEO_ROWS:
            rows = rows[self.rng.permutation(len(rows))[:VIDEO_ROWS]]
        return mean_row(rows)


def mean_row(rows: Float32) -> Float32:
    """Return the unit mean `[512]` of rows `[n, 512]`."""
    mean = rows.mean(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


def train(
    material: Material,
    network: Bert,
    tokenizer: Any,
    settings: Settings,
    progress: Callable[[str], None],
    start: Mapping[str, Tensor] | None = None,
) -> tuple[Tower, int]:
    """Train a tower, from a ridge regression or the state of another; return it and the number of steps."""
    torch.manual_seed(settings.seed)
    rng = np.random.default_rng(settings.seed)
    tower = Tower(network)
    tokens = [tokenize(tokenizer, item.captions) for item in material.training]
    if start is None:
        start_head(tower, material.training, tokens, rng)
    else:
        tower.load_state_dict(start)
    optimiser = _optimiser(tower, settings.lr)
    rates = [group["lr"] for group in optimiser.param_groups]
    batches = Batches(material.training, tokens, settings.batch, rng)
    started = time.monotonic()
    tower.train()
    step = 0
    while (done := settings.done(step, started)) < 1:
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * settings.rate(step, done)
        items, captions, rows = next(batches)
        loss = caption_loss(tower, encode(tower, captions), tower.seen(rows), items)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(tower.parameters(), 1.0)
        optimiser.step()
        step += 1
        progress(f"step {step}, {done:.0%}, loss {loss.item():.3f}, 1/τ {tower.scale.exp().item():.1f}")
    return tower.eval(), step


def caption_loss(tower: Tower, text: Tensor, seen: Tensor, items: Tensor) -> Tensor:
    """Return the loss of captions and pictures; captions of one picture are all right for it."""
    scores = tower.scale.exp().clamp(max=100) * text @ seen.T
    same = (items[:, None] == items).float()
    target = same / same.sum(1, keepdim=True)
    return (cross_entropy(scores, target) + cross_entropy(scores.T, target)) / 2


def encode(tower: Tower, tokens: Sequence[list[int]], part: str = "text") -> Tensor:
    """Return a row for each text, in order; texts of about one length run together."""
    order = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
    rows = []
    for start in range(0, len(order), MICRO):
        ids, mask = padded([tokens[number] for number in order[start : start + MICRO]])
        with torch.autocast("cpu", torch.bfloat16):
            rows.append(getattr(tower, part)(ids, mask))
    places = torch.empty(len(order), dtype=torch.long)
    places[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(rows).float()[places]


def padded(tokens: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
    """Return ids and mask `[n, longest]`.

    >>> padded([[101, 7, 102], [101, 102]])[0].tolist()
    [[101, 7, 102], [101, 102, 0]]
    """
    ids = torch.zeros(len(tokens), max(map(len, tokens)), dtype=torch.long)
    mask = torch.zeros_like(ids, dtype=torch.bool)
    for row, own in enumerate(tokens):
        ids[row, : len(own)], mask[row, : len(own)] = torch.tensor(own), True
    return ids, mask


def tokenize(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the token numbers of each text."""
    return [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]


@torch.no_grad()
def start_head(
    tower: Tower, items: Sequence[Item], tokens: Sequence[Sequence[list[int]]], rng: np.random.Generator
) -> None:
    """Set the head to the ridge regression from sentences to pictures, both centred."""
    chosen = [int(i) for i in rng.integers(0, len(items), RIDGE)]
    x = encode(tower.eval(), [tokens[i][int(rng.integers(len(tokens[i])))] for i in chosen], "sentence")
    y = torch.from_numpy(np.stack([mean_row(items[i].rows) for i in chosen]))
    middle, mean = x.mean(0), y.mean(0)
    x, y = x - middle, y - mean
    ridge = 0.01 * len(x) * x.pow(2).mean() * torch.eye(x.shape[1])
    tower.head.weight.copy_(torch.linalg.solve(x.T @ x + ridge, x.T @ y).T)
    tower.head.bias.copy_(-(tower.head.weight @ middle))
    tower.adapter.bias.copy_(-mean)


def _optimiser(tower: Tower, lr: float) -> torch.optim.Optimizer:
    matrices = [p for p in tower.network.parameters() if p.ndim > 1 and p.requires_grad]
    others = [p for p in tower.network.parameters() if p.ndim <= 1 and p.requires_grad]
    ends = [*tower.head.parameters(), *tower.adapter.parameters()]
    return torch.optim.AdamW(
        [
            {"params": matrices, "lr": lr, "weight_decay": DECAY},
            {"params": others, "lr": lr, "weight_decay": 0.0},
            {"params": ends, "lr": lr * HEAD_RATE, "weight_decay": 0.0},
            {"params": [tower.scale], "lr": 1e-3, "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
    )


@torch.no_grad()
def recall(tower: Tower, tokenizer: Any, items: Sequence[Item], most: int = 5) -> tuple[float, float, float]:
    """Return R@1, R@5 and R@10 in percent, text to picture, of the first few captions of each item."""
    seen = tower.eval().seen(torch.from_numpy(np.stack([mean_row(item.rows) for item in items])))
    captions = [(caption, i) for i, item in enumerate(items) for caption in item.captions[:most]]
    scores = encode(tower, tokenize(tokenizer, [caption for caption, _ in captions])) @ seen.T
    own = scores.gather(1, torch.tensor([[i] for _, i in captions]))
    ranks = (scores > own).sum(1)
    return tuple(100 * float((ranks < k).float().mean()) for k in (1, 5, 10))  # type: ignore[return-value]
