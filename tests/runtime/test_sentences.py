from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wordreel.runtime import sentences
from wordreel.runtime.sentences import DIM, WEIGHTS, SentenceEncoder, shared_encoder
from wordreel.runtime.store import WeightStore
from wordreel.util.lru_cache import LRUCache

GOLDEN = Path(__file__).parent / "golden_sentences.npz"
pytestmark = pytest.mark.skipif(
    not WeightStore().has(WEIGHTS), reason=f"weights are not here: run `wordreel weights fetch {WEIGHTS}`"
)
SENTENCES = ["This is an example sentence", "a dog runs along the beach", ""]


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder()


def test_the_golden_sentences(encoder):
    found = encoder.encode(SENTENCES)
    np.testing.assert_allclose(found[:, :16], np.load(GOLDEN)["rows"], atol=1e-4)
    # The first numbers its authors publish for the first sentence.
    np.testing.assert_allclose(found[0, :4], [0.0677, 0.0635, 0.0487, 0.0793], atol=1e-4)


def test_meaning(encoder):
    cat, kitten, truck, lorry = encoder.encode(
        ["a cat", "a kitten", "a truck on the road", "a lorry on the street"]
    )
    assert cat @ kitten > 0.7
    assert truck @ lorry > 0.5
    assert max(cat @ truck, kitten @ lorry) < 0.35


def test_company_and_order_do_not_matter(encoder):
    sentences = ["a", "a man rides a horse", "words " * 400, "", "A MAN rides a horse", "two dogs"] * 3
    together = encoder.encode(sentences, batch=4)
    assert together.shape == (18, DIM)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    alone = np.concatenate([encoder.encode([sentence]) for sentence in sentences])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together[1], together[4], atol=1e-6)  # case is not read


def test_only_the_first_tokens_count(encoder):
    long = "cat " * 300
    found = encoder.encode([long, long + "truck " * 10_000])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_none_at_all(encoder):
    assert encoder.encode([]).shape == (0, DIM)
    with pytest.raises(TypeError, match="list"):
        encoder.encode("a sentence")


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(codec=None), max_size=50))
def test_any_text_gives_a_finite_unit_vector(encoder, text):
    found = encoder.encode([text, "\x00\ud800"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_the_latest_queries_are_remembered_and_safe_from_callers(encoder, monkeypatch):
    first = encoder.encode(["remember me"])
    expected = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(encoder.encode(["remember me"]), expected)
    monkeypatch.setattr(encoder, "_cache", LRUCache(2))
    for sentence in ("one", "two", "one", "three"):
        encoder.encode([sentence])
    assert [encoder._cache.get(word) is not None for word in ("one", "two", "three")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("most", [2, 3, 8, 30, 256, 400])
def test_pieces_are_those_of_a_tokenizer_that_cuts(encoder, most):
    from tokenizers import Tokenizer

    twin = Tokenizer.from_file(str(WeightStore().file(WEIGHTS, "tokenizer.json")))
    twin.no_padding()
    twin.enable_truncation(most)
    sentences = ["", "a", "a man rides a horse", "unbelievably " * 9, "cat " * 300, "日本語 💡"]
    assert encoder.pieces(sentences, most) == [found.ids for found in twin.encode_batch(sentences)]


def test_threads_may_ask_for_pieces_of_any_length_at_once(encoder, monkeypatch):
    """One thread asks while the tokenizer works for another; both get what they asked for."""
    sentences, others = ["cat " * 300], []

    class Interrupted:
        def __init__(self, tokenizer):
            self._tokenizer, self._first = tokenizer, True

        def __getattr__(self, name):
            return getattr(self._tokenizer, name)

        def encode_batch(self, texts):
            if self._first:
                self._first = False
                other = Thread(target=lambda: others.extend(encoder.pieces(sentences, 30)))
                other.start()
                other.join()
            return self._tokenizer.encode_batch(texts)

    monkeypatch.setattr(encoder, "_tokenizer", Interrupted(encoder._tokenizer))
    assert [len(found) for found in encoder.pieces(sentences, 8)] == [8]
    assert [len(found) for found in others] == [30]


def test_fingerprint(encoder):
    assert encoder.fingerprint == SentenceEncoder().fingerprint
    assert len(encoder.fingerprint) == 16


def test_experts_share_one_encoder_while_any_uses_it():
    store = WeightStore()
    first = shared_encoder(store)
    assert shared_encoder(WeightStore()) is first
    np.testing.assert_allclose(
        first.encode(SENTENCES), SentenceEncoder(store).encode(SENTENCES), atol=2e-6, rtol=0
    )


def test_a_track_has_the_same_bits_whatever_was_encoded_before(monkeypatch):
    track = ["exit", "one two three four", "breaking news tonight from the city"]
    before = {
        "nothing": [],
        "other texts": [[f"sentence {number} of a batch that is worth a network" for number in range(12)]],
        "one of its texts": [["one two three four"]],  # which in another batch is padded to another length
    }
    found = {}
    for name, batches in before.items():
        monkeypatch.setattr(sentences, "_shared", {})
        encoder = shared_encoder(WeightStore())
        for batch in batches:
            encoder.encode(batch)
        found[name] = encoder.encode(track)
    np.testing.assert_array_equal(found["other texts"], found["nothing"])
    np.testing.assert_array_equal(found["one of its texts"], found["nothing"])
