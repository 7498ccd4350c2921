"""Learn, choose and judge on videos apart from each other, and say whether tuning helps.

Every captioned video judges once, by heads that were learned and chosen without it. Better means: the 95 %
interval of the gain in R@1 + R@5 + R@10, by a paired bootstrap over videos, lies above zero, and swapping
before and after at random gives as large a gain at most one time in twenty. What is kept then is the mean of
the folds' heads, each at the strength its own fold chose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.evaluate.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.evaluate.significance import Comparison, compare
from wordreel.training.tune.fit import fit
from wordreel.training.tune.folds import Fold, folds
from wordreel.training.tune.heads import Heads, between, mean
from wordreel.training.tune.judge import everyday_best, kept_share, ranks, spread
from wordreel.training.tune.material import Material, Progress
from wordreel.training.tune.settings import Settings
from wordreel.types import Float64, Int64

METRIC = "Rsum"
DOUBT = 0.05


@dataclass(frozen=True, eq=False)
class Measured:
    """Held-out captions before and after; `strengths` are those that the folds chose."""

    heads: Heads
    before: RetrievalMetrics
    after: RetrievalMetrics
    gain: Comparison
    strengths: tuple[float, ...]
    everyday_kept: float  # of the ten best hits of everyday queries

    @property
    def better(self) -> bool:
        return any(self.strengths) and self.gain.low > 0 and self.gain.p_value <= DOUBT


def measure(material: Material, settings: Settings, progress: Progress | None = None) -> Measured:
    """Five folds, one after another."""
    start = Heads.of(material.tower, len(material.words))
    usual = everyday_best(material, start)
    before, after = np.full(len(material.owner), np.nan), np.full(len(material.owner), np.nan)
    made: list[Heads] = []
    strengths = []
    parts = folds(material.captioned, settings)
    for number, fold in enumerate(parts):
        if progress:
            progress("folds", number, len(parts))
        end = fit(material, fold.learn, settings, settings.seed + number)
        strength = choose(material, start, end, fold, usual, settings)
        heads = at_strength(start, end, strength)
        asked = material.captions_of(fold.judge)
        before[asked], after[asked] = ranks(material, asked, [start, heads])
        made.append(heads)
        strengths.append(strength)
    if progress:
        progress("folds", len(parts), len(parts))
    heads = mean(made).rounded()
    return Measured(
        heads,
        retrieval_metrics(before),
        retrieval_metrics(after),
        compare(before, after, METRIC, groups=material.owner, seed=settings.seed),
        tuple(strengths),
        kept_share(usual, everyday_best(material, heads)),
    )


def choose(
    material: Material, start: Heads, end: Heads, fold: Fold, usual: Int64, settings: Settings
) -> float:
    """The strength that serves the choosing videos best, of those that leave everyday queries alone; the
    least of equals."""
    candidates = {strength: at_strength(start, end, strength) for strength in settings.strengths}
    least = settings.kept_at_least
    allowed = {
        strength: heads
        for strength, heads in candidates.items()
        if strength == 0 or kept_share(usual, everyday_best(material, heads)) >= least
    }
    found: Float64 = ranks(material, material.captions_of(fold.choose), list(allowed.values()))
    return list(allowed)[int(np.argmin(spread(found)))]


def at_strength(start: Heads, end: Heads, strength: float) -> Heads:
    """Rounded as it would be kept; the start as it is."""
    return between(start, end, strength).rounded() if strength else start


def without_idle_words(heads: Heads, words: tuple[str, ...]) -> tuple[Heads, tuple[str, ...]]:
    """Leave out words that learned nothing."""
    busy = np.abs(heads.words).max(axis=1, initial=0) > 0
    return replace(heads, words=heads.words[busy]), tuple(
        word for word, kept in zip(words, busy, strict=True) if kept
    )
