"""Captions of models that read frames: id 0 pads, and is a token of its own inside a word."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.training.data.caption_store import CaptionStore  # noqa: E402
from wordreel.lab.training.data.packed import pack  # noqa: E402


def test_the_mask_is_of_the_lengths_and_keeps_a_zero_inside_a_caption():
    rows = [np.array(row) for row in ([8, 5, 0, 9], [8, 9], [8, 1, 2, 3, 9])]
    captions = CaptionStore(pack(rows), torch.device("cpu"))
    ids, mask = captions.batch(torch.tensor([0, 1]))
    assert ids.tolist() == [[8, 5, 0, 9], [8, 9, 0, 0]]
    assert mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert captions.batch(torch.tensor([1]), 5).mask.tolist() == [[True] * 2 + [False] * 3]
