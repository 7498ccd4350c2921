"""Pairs of splits in which one caption of a video counts."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.datasets.trees.published import TEXTS, write_ce  # noqa: E402

from wordreel.lab.datasets.trees import open_tree  # noqa: E402
from wordreel.lab.training.data import from_tree  # noqa: E402

EXPERTS = ["face", "scene.densenet161.0"]


def test_word_features_are_those_of_the_caption_that_counts(tmp_path):
    said = write_ce(tmp_path / "MSRVTT")
    tree = open_tree(tmp_path / "MSRVTT")
    pairs = from_tree(tree, "jsfusion-val", EXPERTS, words=next(iter(tree.text_files)))
    number = pairs.ids.index("video3")
    assert [caption.text for caption in pairs.captions[number]] == [TEXTS["video3"][1]]
    assert len(pairs.words[number]) == 1
    assert np.array_equal(pairs.words[number][0], said["words"]["video3"][1])
    every = from_tree(tree, "jsfusion-train", EXPERTS, words=next(iter(tree.text_files)))
    assert all(len(words) == 2 for words in every.words)
