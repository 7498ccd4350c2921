"""Which pairs every step sees: a function of the seed and the epoch alone, so that any step can be redone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordreel.errors import TrainingError
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.settings import DataSettings, RunSettings
from wordreel.types import Int64


@dataclass(frozen=True)
class BatchSampler:
    """`epoch(n)` gives the batches of an epoch as numbers of videos and of captions.

    `least` are the pairs that a batch needs: two for each process that shares it.
    """

    pairs: Pairs
    data: DataSettings
    run: RunSettings
    least: int = 2

    def __post_init__(self) -> None:
        if len(self.pairs) < 2:
            raise TrainingError(
                f"{self.pairs.name} has one video; training tells videos from each other and needs more"
            )

    @cached_property
    def counts(self) -> Int64:
        """Return how many captions each video has."""
        return self.pairs.counts

    @cached_property
    def owners(self) -> Int64:
        """Return the video of each caption."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def epoch(self, number: int) -> list[tuple[Int64, Int64]]:
        """Return the (videos [b], captions [b]) of every step of epoch 0, 1, …."""
        if not self.run.steps:
            return self._pass(number)
        # An epoch of a given number of steps is a segment of an endless sequence of passes.
        each = len(self._pass(0))
        first = number * self.run.steps
        batches: list[tuple[Int64, Int64]] = []
        for number_of_pass in range(first // each, (first + self.run.steps - 1) // each + 1):
            batches += self._pass(number_of_pass)
        skip = first - (first // each) * each
        return batches[skip : skip + self.run.steps]

    def steps_of_epoch(self) -> int:
        """Return how many steps an epoch has."""
        return self.run.steps or len(self._pass(0))

    def largest(self) -> int:
        """Return the pairs of a batch that is as full as any."""
        return max(len(videos) for videos, _ in self._pass(0))

    def _pass(self, number: int) -> list[tuple[Int64, Int64]]:
        chance = np.random.default_rng([self.run.seed, number, 7919])
        videos, captions = self._pairs(chance)
        order = chance.permutation(len(videos))
        videos, captions = videos[order], captions[order]
        if not self.data.by_source:
            batches = self._cut(videos, captions)
        else:
            batches = []
            for source in np.unique(self.pairs.source[videos]):
                some = self.pairs.source[videos] == source
                batches += self._cut(videos[some], captions[some])
            batches = [batches[index] for index in chance.permutation(len(batches))]
        if not batches:
            if len(videos) < 2:
                raise TrainingError(
                    "there is one pair to train on, and nothing to tell it from; give more videos"
                )
            raise TrainingError(
                f"{len(videos)} pairs do not fill a batch of {self.run.batch}; set a smaller run.batch, or "
                "run.drop_last=false"
            )
        return batches

    def _pairs(self, chance: np.random.Generator) -> tuple[Int64, Int64]:
        """Return the pairs of one pass: each source's as often as its share says."""
        videos, captions = [], []
        firsts = np.cumsum(self.counts) - self.counts
        for source, share in enumerate(self.pairs.shares):
            here = np.flatnonzero(self.pairs.source == source)
            units = here
            if self.data.captions == "all":
                units = np.flatnonzero(self.pairs.source[self.owners] == source)
            whole, part = int(share), share - int(share)
            drawn = [units] * whole
            if part > 0:
                drawn.append(chance.permutation(units)[: max(1, round(part * len(units)))])
            for some in drawn:
                if self.data.captions == "one":
                    videos.append(some)
                    captions.append(firsts[some] + chance.integers(0, self.counts[some]))
                else:
                    videos.append(self.owners[some])
                    captions.append(some)
        return np.concatenate(videos), np.concatenate(captions)

    def _cut(self, videos: Int64, captions: Int64) -> list[tuple[Int64, Int64]]:
        """Batches in order. A last one of too few is left out: a single pair has no negatives or variance."""
        size = self.run.batch
        starts = range(0, len(videos), size)
        batches = [(videos[start : start + size], captions[start : start + size]) for start in starts]
        least = size if self.run.drop_last else self.least
        return [batch for batch in batches if len(batch[0]) >= least]
