"""Learn, choose and judge on videos apart from each other, and say whether tuning helps.

Every captioned video judges once, by heads that were learned and chosen without it. Better means: the 95 %
interval of the gain in R@1 + R@5 + R@10, by a paired bootstrap over videos, lies above zero, and swapping
before and after at random gives as large a gain at most one time in twenty. The tuned model gets the mean
of the folds' heads, each at the strength its own fold chose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune.fit_heads import fit_heads
from wordreel.lab.training.tune.heads import Heads, between, mean
from wordreel.lab.training.tune.ranking import everyday_best, mean_log_rank, overlap, ranks
from wordreel.lab.training.tune.tune_data import TuneData
from wordreel.progress import Progress, ProgressCallback
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.significance import Comparison, compare
from wordreel.types import Float64, Int64

METRIC = "Rsum"
DOUBT = 0.05


@dataclass(frozen=True, eq=False)
class TuneFold:
    """Three sets of videos that share none."""

    learn: Int64
    choose: Int64
    judge: Int64


def folds(videos: int, settings: TuneSettings) -> list[TuneFold]:
    """Every video judges once; of the others, a part chooses and the rest teaches.

    >>> one = folds(20, TuneSettings())[0]
    >>> len(one.learn), len(one.choose), len(one.judge)
    (12, 4, 4)
    """
    order = np.random.default_rng(settings.seed).permutation(videos)
    parts = np.array_split(order, settings.folds)
    result = []
    for number, judge in enumerate(parts):
        rest = np.concatenate([part for other, part in enumerate(parts) if other != number])
        # Begin elsewhere in each fold, so that not the same videos choose again and again.
        rest = np.roll(rest, number * len(rest) // settings.folds)
        many = max(round(settings.choosing * len(rest)), 1)
        result.append(TuneFold(np.sort(rest[many:]), np.sort(rest[:many]), np.sort(judge)))
    return result


@dataclass(frozen=True, eq=False)
class CrossValidation:
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


def cross_validate(
    data: TuneData, settings: TuneSettings, on_progress: ProgressCallback | None = None
) -> CrossValidation:
    """Five folds, one after another."""
    start = Heads.of(data.tower, len(data.words))
    usual = everyday_best(data, start)
    before, after = np.full(len(data.owner), np.nan), np.full(len(data.owner), np.nan)
    fitted: list[Heads] = []
    strengths = []
    parts = folds(data.captioned, settings)
    for number, fold in enumerate(parts):
        if on_progress:
            on_progress(Progress("cross-validating", number, len(parts)))
        end = fit_heads(data, fold.learn, settings, settings.seed + number)
        strength = choose(data, start, end, fold, usual, settings)
        heads = at_strength(start, end, strength)
        judged = data.captions_of(fold.judge)
        before[judged], after[judged] = ranks(data, judged, [start, heads])
        fitted.append(heads)
        strengths.append(strength)
    if on_progress:
        on_progress(Progress("cross-validating", len(parts), len(parts)))
    heads = mean(fitted).rounded()
    return CrossValidation(
        heads,
        retrieval_metrics(before),
        retrieval_metrics(after),
        compare(before, after, METRIC, groups=data.owner, seed=settings.seed),
        tuple(strengths),
        overlap(usual, everyday_best(data, heads)),
    )


def choose(
    data: TuneData, start: Heads, end: Heads, fold: TuneFold, usual: Int64, settings: TuneSettings
) -> float:
    """The strength that serves the choosing videos best, of those that leave everyday queries alone; the
    least of equals."""
    candidates = {strength: at_strength(start, end, strength) for strength in settings.strengths}
    least = settings.kept_at_least
    allowed = {
        strength: heads
        for strength, heads in candidates.items()
        if strength == 0 or overlap(usual, everyday_best(data, heads)) >= least
    }
    values: Float64 = ranks(data, data.captions_of(fold.choose), list(allowed.values()))
    return list(allowed)[int(np.argmin(mean_log_rank(values)))]


def at_strength(start: Heads, end: Heads, strength: float) -> Heads:
    """Rounded as in the file that would be stored; the start as it is."""
    return between(start, end, strength).rounded() if strength else start


def without_idle_words(heads: Heads, words: tuple[str, ...]) -> tuple[Heads, tuple[str, ...]]:
    """Leave out words that learned nothing."""
    busy = np.abs(heads.words).max(axis=1, initial=0) > 0
    return replace(heads, words=heads.words[busy]), tuple(
        word for word, used in zip(words, busy, strict=True) if used
    )
