"""The text tower: what it takes, and that a text has one vector."""

import numpy as np
import pytest
from tests.models.joint.tiny import direction, write_tower

from wordreel.banks.sources import everyday_queries
from wordreel.errors import WeightsCorrupt
from wordreel.models.joint.text_tower import MAX_CACHED_BATCH, MAX_TOKENS, NETWORK, TextTower


@pytest.fixture
def tower(tmp_path):
    return TextTower(tmp_path, write_tower(tmp_path / "tower"))


def test_each_text_has_its_row_in_order(tower):
    rows = tower.encode(["a dog", "Beach", "a dog"])
    np.testing.assert_allclose(rows, [direction("a", "dog"), direction("beach"), direction("a", "dog")])


def test_a_text_has_the_same_row_in_any_list(tmp_path):
    """By the network that ships, bit by bit; the slow twin encodes one text at a time."""
    texts = [
        *everyday_queries()[:20],
        "",
        "a much longer text, which is here to pad others where lists are padded",
    ]
    one_by_one = [TextTower(tmp_path).encode([text])[0] for text in texts]
    np.testing.assert_array_equal(TextTower(tmp_path).encode(texts), one_by_one)
    np.testing.assert_array_equal(TextTower(tmp_path).encode(texts[::-1]), one_by_one[::-1])


def test_only_the_first_tokens_count(tower):
    first = " ".join(["dog"] * MAX_TOKENS)
    np.testing.assert_array_equal(tower.encode([f"{first} beach"]), tower.encode([first]))


def test_queries_are_cached_and_banks_are_not(tower, monkeypatch):
    tower.encode(["a dog"])
    tower.encode([f"bus {number}" for number in range(MAX_CACHED_BATCH + 1)])
    runs = []
    monkeypatch.setattr(tower, "_encode", lambda texts: runs.append(texts) or np.zeros((len(texts), 512)))
    tower.encode(["a dog"])
    tower.encode(["bus 1"])
    assert [list(texts) for texts in runs] == [[], ["bus 1"]]


def test_unusual_texts_have_rows_and_one_text_is_no_list(tower):
    assert np.isfinite(tower.encode(["\ud800 dog", "", "x" * 10**6])[0]).all()
    with pytest.raises(TypeError, match="list of texts"):
        tower.encode("a dog")


def test_the_fingerprint_is_that_of_both_files(tmp_path):
    one = TextTower(tmp_path, write_tower(tmp_path / "one"))
    same = TextTower(tmp_path, write_tower(tmp_path / "two"))
    (tmp_path / "two" / "tokenizer.json").write_text("{}")
    assert one.fingerprint == TextTower(tmp_path, tmp_path / "one").fingerprint != same.fingerprint


@pytest.mark.parametrize("damage", [None, b"no network"])
def test_a_missing_or_damaged_file_says_what_to_do(tmp_path, damage):
    folder = write_tower(tmp_path / "tower")
    if damage is None:
        (folder / NETWORK).unlink()
    else:
        (folder / NETWORK).write_bytes(damage)
    with pytest.raises(WeightsCorrupt, match=r"text tower.*cannot be used.*install wordreel again"):
        TextTower(tmp_path, folder).encode(["a dog"])
