"""The study of languages: what it reads, what it counts, and its tables."""

import gzip

import numpy as np
import pytest
from languages import find_originals, read_captions, text_of


def test_captions_are_read_by_language(tmp_path):
    path = tmp_path / "captions.tsv.gz"
    path.write_bytes(gzip.compress(b"a.webp\tA dog.\tEin Hund.\nb.webp\tA car.\t\n"))
    assert read_captions(path, ["en", "de"]) == {
        "en": {"a.webp": "A dog.", "b.webp": "A car."},
        "de": {"a.webp": "Ein Hund."},
    }


def test_a_sentence_counts_when_its_own_original_is_nearest():
    originals = np.eye(3, dtype=np.float32)
    found = find_originals(originals[[0, 1, 1]], originals)
    assert found["r1"] == pytest.approx(200 / 3)


def test_the_tables_compare_each_language_with_english():
    recall = {"r1": 50.0, "r5": 70.0, "r10": 80.0, "pictures": 1000.0}
    german = {**recall, "r1": 40.0}
    text = text_of({"pictures": {"en": recall, "de": german}, "sentences": {"es": recall}, "originals": 1000})
    assert "| German | 40.0 | 70.0 | 80.0 | 80% |" in text
    assert "| Spanish | 50.0 | 70.0 | 80.0 |" in text
