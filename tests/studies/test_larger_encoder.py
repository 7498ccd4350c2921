import numpy as np
import pytest
from larger_encoder import BOTH, LARGE, MIXTURES, SMALL, rows_of, text_of
from row_weights import Strangers

from wordreel.lab.training.tune.row_weights import RowScores
from wordreel.models.reel.model import WEIGHTS


def some(good):
    rows = np.random.default_rng(0).normal(0, 0.3, (len(WEIGHTS), 36, 12)).astype(np.float32)
    owner = np.repeat(np.arange(12), 3)
    rows[list(WEIGHTS).index("appearance"), np.arange(36), owner] += good
    scores = RowScores(rows, np.ones((12, len(WEIGHTS)), bool), np.zeros((36, 12), np.float32), np.arange(12))
    return Strangers("coco", scores, owner)


def test_the_report_compares_encoders_mixture_by_mixture():
    rows = [
        row
        for encoder, good in ((SMALL, 0.2), (LARGE, 0.5), (BOTH, 3.0))
        for row in rows_of("without COCO", encoder, [some(good), some(good)])
    ]
    assert len(rows) == 3 * len(MIXTURES) - 2  # the learned row alone is the same for all
    seen = {row["encoder"]: row for row in rows if row["mixture"] == "appearance"}
    assert seen[SMALL]["sum"] < seen[LARGE]["sum"] < seen[BOTH]["sum"] == pytest.approx(300)
    text = text_of(rows)
    assert "## without COCO" in text
    assert f"| appearance | {BOTH} | 100.0 | 100.0 | 100.0 | 300.0 |" in text
