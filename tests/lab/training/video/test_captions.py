"""Captions as batches: id 0 pads, and is a token of its own inside a word."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.models.clip.video_text import CaptionBatch  # noqa: E402
from wordreel.lab.training.video.captions import CaptionIds  # noqa: E402


def test_the_mask_is_of_the_lengths_and_keeps_a_zero_inside_a_caption():
    ids = np.array([[8, 5, 0, 9, 0, 0], [8, 9, 0, 0, 0, 0], [8, 1, 2, 3, 9, 0]])
    captions = CaptionIds(ids, np.array([4, 2, 5]))
    batch = captions.batch(np.array([0, 1]), torch.device("cpu"))
    assert isinstance(batch, CaptionBatch)
    assert batch.ids.tolist() == [[8, 5, 0, 9], [8, 9, 0, 0]]
    assert batch.mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert captions.batch(np.array([1]), torch.device("cpu"), 5).mask.tolist() == [[True] * 2 + [False] * 3]
