"""Inverted softmax over the test queries: the "basic inverted softmax during inference" that TS2-Net (Liu et
al. 2022), CAMoE and CLIP2TV report. **Transductive**: it needs all the test queries.

    η(q, v) = exp(β s(q, v)) / Σ over all test queries q' of exp(β s(q', v))

The formula of `inverted_softmax`, with the test queries as the bank. Released code multiplies the softmax by
s(q, v) once more, which is `dual_softmax`. β = 1 on logits of scale 100, so 100 on cosines. For video to text
the test queries are the videos: fit on that direction's query rows.

A figure by this method cannot be had by a search, which has one query at a time: its one number per item is
refused to indexes (`State.bias`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wordreel.hubness.inverted_softmax import InvertedSoftmax


@dataclass(frozen=True)
class TransductiveInvertedSoftmax(InvertedSoftmax):
    """s(q, v) − bᵥ, with bᵥ from the test queries."""

    name: ClassVar[str] = "test-is"
    transductive: ClassVar[bool] = True
    beta: float = 100.0
