"""QB-Norm (dynamic inverted softmax) of a trained model, both ways, with β chosen on the validation split.

Text to video the bank is the training captions; video to text it is the training videos.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wordreel.hubness import Direction
from wordreel.hubness.beta import GRID
from wordreel.hubness.fit import LOGIT_SIZE
from wordreel.hubness.methods.dynamic_inverted_softmax import DynamicInvertedSoftmax
from wordreel.lab.evaluate.normalised_rankings import NormalisedRankings, rank_normalised
from wordreel.retrieval.caption_ranks import Captions
from wordreel.retrieval.metrics import DISPLAYED
from wordreel.types import Float32, Int64

Splits = Mapping[str, Float32]


def normalised(
    plain: Splits, captions: Splits, videos: Splits, counts: Mapping[str, Int64]
) -> dict[str, Any]:
    """Figures of "val" and "test" by direction.

    `plain[split]` is `[captions, videos]` of the split, `captions[split]` the training captions against its
    videos, `videos[split]` its captions against the training videos.
    """
    owners = {split: _owners(numbers) for split, numbers in counts.items()}
    text, video = Direction.TEXT_TO_VIDEO, Direction.VIDEO_TO_TEXT
    return {
        "t2v": _chosen(plain, captions, owners, text),
        "v2t": _chosen(_turned(plain), _turned(videos), owners, video),
    }


def _chosen(
    rows: Splits, bank: Splits, owners: Mapping[str, Captions], direction: Direction
) -> dict[str, Any]:
    """The β of the best R@1 on validation, then of the least mean rank; the test split with it."""
    reach = float(np.abs(bank["val"]).max(initial=0))
    if reach > LOGIT_SIZE:  # the grid of β is for cosines
        rows, bank = ({split: one / reach for split, one in part.items()} for part in (rows, bank))

    def done(split: str, beta: float) -> NormalisedRankings:
        method = DynamicInvertedSoftmax(beta=beta)
        return rank_normalised(method, bank[split], rows[split], owners[split], direction)

    tried = {beta: done("val", beta).after.metrics for beta in GRID}
    beta = min(tried, key=lambda one: (-tried[one].r1, tried[one].mean_rank, one))
    found = done("test", beta)
    return {
        "beta": beta,
        "bank": len(bank["test"]),
        "val": [{"beta": one, "R1": tried[one].r1, "MnR": tried[one].mean_rank} for one in GRID],
        "test": found.after.metrics.table(DISPLAYED),
        "corrected": found.corrected,
        "queries": found.queries,
        "skewness": [found.before.hubness.skewness, found.after.hubness.skewness],
    }


def _owners(counts: Int64) -> Captions:
    owner = np.repeat(np.arange(len(counts)), counts)
    return Captions(len(counts), owner, np.ones(len(owner), bool))


def _turned(splits: Splits) -> dict[str, Float32]:
    return {split: np.ascontiguousarray(rows.T) for split, rows in splits.items()}
