"""Pairs of splits in which one caption of a video counts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.datasets.trees.published import TEXTS, write_ce  # noqa: E402

from wordreel.datasets.trees import open_tree  # noqa: E402
from wordreel.training.data import from_tree  # noqa: E402

EXPERTS = ["face", "scene.densenet161.0"]


def test_word_features_are_those_of_the_caption_that_counts(tmp_path):
    said = write_ce(tmp_path / "MSRVTT")
    tree = open_tree(tmp_path / "MSRVTT")
    found = from_tree(tree, "jsfusion-val", EXPERTS, words=next(iter(tree.text_files)))
    number = found.ids.index("video3")
    assert [caption.text for caption in found.captions[number]] == [TEXTS["video3"][1]]
    assert len(found.words[number]) == 1
    assert np.array_equal(found.words[number][0], said["words"]["video3"][1])
    every = from_tree(tree, "jsfusion-train", EXPERTS, words=next(iter(tree.text_files)))
    assert all(len(words) == 2 for words in every.words)
