"""Which β to use, without validation pairs: by the spread of the bank.

    β = SPREADS / σ      σ the median over items of the standard deviation of an item's bank similarities

so that the softmax over the bank is equally sharp on every scale: cosines of any model, or logits. SPREADS
was chosen by leaving one collection out at a time (`studies/beta.py`): each time the others chose the same
value. With a bank of another domain, IS and DIS can still lose to plain ranking; CSLS, which has no β, did
not.
"""

from __future__ import annotations

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import matrix
from wordreel.hubness.standard_score import SAME
from wordreel.types import Array

SPREADS = 1.5  # β in units of 1/σ
PUBLISHED = 20.0  # of QB-Norm, for banks that have no spread
GRID = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0)  # for cosines


def choose_beta_unlabelled(bank: Array) -> float:
    """Choose β without labels: SPREADS over the usual spread of an item's bank similarities.

    Cost: one pass over the bank. Items without spread do not count; if none has any, it is the published 20.

    Args:
        bank: Similarities of the bank, `[bank, items]`, at least two queries.

    Returns:
        β to two significant digits: inversely proportional to the scale of the similarities.

    Raises:
        HubnessError: The bank has fewer than two queries.

    >>> bank = np.random.default_rng(0).normal(0, 0.1, (200, 40))
    >>> choose_beta_unlabelled(bank), choose_beta_unlabelled(100 * bank)
    (15.0, 0.15)
    """
    bank = matrix(bank, "the bank")
    if len(bank) < 2:
        raise HubnessError("choosing beta without labels needs a bank of at least two queries")
    spreads = bank.std(axis=0, dtype=np.float64)
    known = spreads[spreads > SAME * np.abs(bank).max(initial=0)]
    return float(f"{SPREADS / np.median(known):.2g}") if len(known) else PUBLISHED
