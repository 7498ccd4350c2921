"""Train the vectors of the words of other languages; everything else of the tower stays as it is.

    loss = CE(30 · theirs · oursᵀ, own original) + 10 · mean(1 − cos(theirs, ours))

`ours` are English sentences by the tower, `theirs` their translations. Only rows of these words learn, so
that an English sentence, which has none of them, keeps its vector to the bit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tower_training import Settings, Tower, encode, tokenize
from tower_words import Pairs

TEMPERATURE = 30.0
CLOSENESS = 10.0


def train_words(
    tower: Tower,
    rows: Sequence[int],
    tokenizer: Any,
    pairs: Mapping[str, Pairs],
    settings: Settings,
    progress: Callable[[str], None],
) -> int:
    """Train these rows of the table of words, and return the number of steps."""
    torch.manual_seed(settings.seed)
    table = tower.eval().network.embeddings.word_embeddings.weight
    for parameter in tower.parameters():
        parameter.requires_grad_(parameter is table)
    still = torch.ones(len(table), dtype=torch.bool)
    still[list(rows)] = False
    optimiser = torch.optim.Adam([table], lr=settings.lr, betas=(0.9, 0.98))
    batches = _batches(pairs, settings.batch, random.Random(settings.seed))  # noqa: S311
    started, step = time.monotonic(), 0
    while (done := settings.done(step, started)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = settings.lr * settings.rate(step, done)
        english, translations = zip(*next(batches), strict=True)
        with torch.no_grad():
            ours = encode(tower, tokenize(tokenizer, english))
        theirs = encode(tower, tokenize(tokenizer, translations))
        loss = translation_loss(theirs, ours)
        optimiser.zero_grad()
        loss.backward()
        if table.grad is not None:
            table.grad[still] = 0
        optimiser.step()
        step += 1
        progress(f"step {step}, {done:.0%}, loss {loss.item():.3f}")
    return step


def translation_loss(theirs: Tensor, ours: Tensor) -> Tensor:
    """Return how far translations `[n, 512]` are from their originals, and how near to others'."""
    scores = TEMPERATURE * theirs @ ours.T
    same = (ours @ ours.T > 1 - 1e-4) & ~torch.eye(len(ours), dtype=torch.bool)
    chosen = cross_entropy(scores.masked_fill(same, -1e4), torch.arange(len(ours)))
    return chosen + CLOSENESS * (1 - (theirs * ours).sum(1)).mean()


def _batches(pairs: Mapping[str, Pairs], size: int, rng: random.Random) -> Iterator[list[tuple[str, str]]]:
    """Yield batches with about as many pairs of each language, for ever."""
    while True:
        yield [rng.choice(pairs[language]) for language in islice(cycle(sorted(pairs)), size)]
