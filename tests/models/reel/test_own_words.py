"""Words of a user's own: the table against a loop over words."""

import numpy as np
import pytest

from wordreel.errors import WeightsCorrupt
from wordreel.models.reel.checkpoint import ReelCheckpoint
from wordreel.models.reel.own_words import LONGEST, MOST, OwnWords, words_of

TABLE = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
WORDS = ("zorp", "7b", "straße")


def own(words=WORDS, table=TABLE):
    return OwnWords.of(ReelCheckpoint({"words": table}, {}, {}, {"words": words}))


def test_each_known_word_is_added():
    texts = ["a ZORP, zorp and unit_7b", "nothing known", "", "Straße straße"]
    found = own().add(texts)
    for row, text in zip(found, texts, strict=True):
        known = [TABLE[WORDS.index(word)] for word in words_of(text) if word in WORDS]
        want = sum(known, np.zeros(5)) / np.sqrt(max(len(known), 1))
        np.testing.assert_allclose(row, want, atol=1e-6)


def test_long_and_many_words():
    many = tuple(f"w{n}" for n in range(MOST + 9))
    table = np.ones((len(many), 2), np.float32)
    np.testing.assert_allclose(own(many, table).add([" ".join(many)]), np.sqrt(MOST), rtol=1e-6)
    assert words_of("x" * (LONGEST + 1)) == []


def test_the_model_that_ships_has_none():
    assert OwnWords.of(ReelCheckpoint({}, {}, {}, {})).add(["zorp"]) is None


def test_a_table_that_does_not_fit_is_refused():
    with pytest.raises(WeightsCorrupt, match="tune it again"):
        own(WORDS[:2])
