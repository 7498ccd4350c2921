import numpy as np
import pytest
from row_weights import GRID, RowScores, Strangers, choose, cost, left_out, study, text_of

from wordreel.models.joint.model import WEIGHTS

ROWS = list(WEIGHTS)


def some(collection, good, seed=0):
    """Captions whose row `good` knows their video; the other rows are noise."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(12), 3)
    rows = rng.normal(0, 0.3, (len(ROWS), 36, 12)).astype(np.float32)
    rows[ROWS.index(good), np.arange(36), owner] += 1.5
    available = np.ones((12, len(ROWS)), bool)
    return Strangers(
        collection, RowScores(rows, available, np.zeros((36, 12), np.float32), np.arange(12)), owner
    )


def test_the_row_that_knows_counts_most():
    chosen = choose([some("msvd", "sound")])
    assert chosen["sound"] == max(GRID)
    assert all(value in GRID for row, value in chosen.items() if value != WEIGHTS[row])
    assert chosen["seen"] == WEIGHTS["seen"]
    assert cost([some("msvd", "sound")], chosen) < cost([some("msvd", "sound")], WEIGHTS)


def test_a_collection_counts_once_however_many_checkpoints_answer_it():
    one, two = some("msvd", "sound"), some("coco", "speech", 1)
    assert cost([one, one, two], WEIGHTS) == pytest.approx(cost([one, two], WEIGHTS))
    expected = (cost([one], WEIGHTS) + cost([two], WEIGHTS)) / 2
    assert cost([one, two], WEIGHTS) == pytest.approx(expected)


def test_the_report_has_weights_chosen_without_the_collection():
    result = study([some("msvd", "sound"), some("coco", "speech", 1)])
    here = {row["label"]: row for row in result["rows"] if row["collection"] == "coco"}
    assert here["chosen on the others"]["weights"] == choose([some("msvd", "sound")])
    assert here["pictures alone"]["weights"]["speech"] == 0
    text = text_of(result)
    assert "## coco" in text
    assert "| chosen here |" in text


def test_labels_name_what_was_left_out():
    assert [left_out(f"without {name}") for name in ("COCO", "Flickr8k", "MSVD", "films")] == [
        "coco", "flickr8k", "msvd", "",
    ]  # fmt: skip
