"""The study of normalisation without labels: constants come from other collections."""

import numpy as np
import pytest
from beta import MULTIPLES, RULES, Case, case_of, chosen, judged, rsum, text_of
from strangers import COLLECTIONS, Gallery
from tests.hubness.hubby import hubby

from wordreel.hubness import make_method
from wordreel.hubness.beta import GRID
from wordreel.retrieval.ranks import ranks_of


def case(collection, good, seed=0):
    """A case in which the constant `good` ranks every answer first, and others rank it second."""
    plain = np.full(40, 12.0)
    ranks = {(rule, 0.0): plain for rule in RULES}
    for rule, values in (("fixed", GRID), ("spread", MULTIPLES)):
        for gate in ("", " gated"):
            ranks |= {(rule + gate, v): np.full(40, 1.0 if v == good[rule] else 6.0) for v in values}
    right = np.arange(40)
    return Case("default", collection, "msvd", "everyday", 0.1, plain, right, ranks)


def test_a_constant_is_chosen_on_the_other_collections():
    cases = [
        case("msvd-test", {"fixed": 5.0, "spread": 1.0}),
        case("coco-test", {"fixed": 50.0, "spread": 3.0}),
    ]
    assert chosen("fixed", cases, "msvd-test") == 50.0
    assert chosen("spread gated", cases, "coco-test") == 1.0
    assert chosen("csls", cases, "msvd-test") == 0.0
    found = {row["collection"]: row for row in judged("labels", cases)}
    assert found["msvd-test"]["constant"] == 5.0  # its own labels
    assert found["msvd-test"]["difference"] == 300.0
    rows = [row for rule in RULES for row in judged(rule, cases)]
    assert "| IS, one β | 5, 50 | 2 | +100.00 | +100.0 | 2 | 0 |" in text_of(rows)


@pytest.mark.parametrize("rule", ["csls", "spread", "fixed gated"])
def test_ranks_are_those_of_the_method_on_whole_matrices(rule, monkeypatch):
    monkeypatch.setattr("beta.GRID", (5.0, 20.0))
    bank, rows, right = hubby(seed=1, bank=80, queries=60, items=30)
    gallery = Gallery(COLLECTIONS[0], None, None, np.arange(30), ("",) * 60, right)
    made = case_of("default", gallery, "everyday", rows, bank)
    sigma = np.median(bank.astype(np.float64).std(axis=0))
    key, method = {
        "csls": (("csls", 0.0), make_method("csls")),
        "spread": (("spread", 1.5), make_method("is", beta=1.5 / sigma)),
        "fixed gated": (("fixed gated", 20.0), make_method("dis", beta=20.0)),
    }[rule]
    state = method.fit(bank)
    slow = []
    for row, answer in zip(rows, right, strict=True):
        held = not method.gated or state.activation[row.argmax()]
        scores = row - state.offset if held else row
        slow.append(1 + (scores > scores[answer]).sum())
    assert made.ranks[key].tolist() == slow
    assert made.plain.tolist() == ranks_of(rows, right).tolist()
    assert made.gain(key) == rsum(made.ranks[key]) - rsum(made.plain)
    assert made.domain == "everyday queries"
