"""The small encoder of queries: close to both sentence encoders, and only in their place where it may be."""

from dataclasses import replace

import numpy as np
import pytest

from wordreel.errors import WeightsCorrupt
from wordreel.lab.models.text.minilm import minilm_network
from wordreel.models.reel import checkpoint, model, query_encoder
from wordreel.models.reel.model import Reel
from wordreel.models.reel.query_encoder import QueryEncoder
from wordreel.types import Clip, Track
from wordreel.weights.store import WeightStore

TEXTS = ["a man lifts a car", "two dogs run over a frozen lake", "soup"]
LONG = "a dog runs after a ball and then " * 9


@pytest.fixture(scope="module")
def reel():
    return Reel(WeightStore())


def test_it_is_close_to_both_encoders_and_the_same_in_any_batch(reel):
    together, exact = reel.encode_fast(TEXTS), Reel(WeightStore()).encode(TEXTS)
    for one, other in zip(together, exact, strict=True):
        assert one.text == other.text
        cosines = (one.vectors * other.vectors).sum(axis=1)
        assert (cosines > 0.94).all()
        assert (cosines < 0.9999).all()
    alone = Reel(WeightStore()).encode_fast(TEXTS[1:2])[0]
    np.testing.assert_array_equal(alone.vectors, together[1].vectors)


def test_the_network_is_its_layers_in_torch(reel):
    """In 8 bits and without padding, against the same weights in 32 bits."""
    torch = pytest.importorskip("torch")
    arrays, card = query_encoder.read()
    from wordreel.lab.models.config import MINILM
    from wordreel.lab.models.text.bert import Bert

    whole = minilm_network().state_dict()
    slow = Bert(replace(MINILM, layers=card["layers"])).eval()
    known = {name: value for name, value in whole.items() if not name.startswith("encoder.")}
    layers = {name: torch.from_numpy(value) for name, value in arrays.items() if name.startswith("encoder.")}
    slow.load_state_dict({**known, **layers})
    encoder = QueryEncoder(WeightStore(), reel._bridge.pieces)
    for text in TEXTS:
        ids = torch.tensor(reel._bridge.pieces([text], 99))
        with torch.no_grad():
            mean = slow(ids, torch.ones_like(ids, dtype=torch.bool))[0].mean(0).numpy()
        for head, found in zip(query_encoder.HEADS, encoder.encode(text), strict=True):
            expected = arrays[f"heads.{head}.weight"] @ mean + arrays[f"heads.{head}.bias"]
            assert found @ expected / np.linalg.norm(expected) > 0.985
            assert abs(np.linalg.norm(found) - 1) < 1e-5


def test_reasons_reuse_the_vector_that_found_the_hit(reel):
    query = reel.encode_fast(["a kettle boils"])[0]
    speech = reel.experts.index("speech")
    np.testing.assert_array_equal(reel._bridge._encoder.encode(["a kettle boils"])[0], query.vectors[speech])
    track = Track(np.random.default_rng(0).random((1, 1024), np.float32), np.array([[0.0, 4.0]]))
    assert "motion" in reel.explain(query, {"motion": track}, Clip("content", 0.0, 4.0))


def test_longer_texts_than_it_learned_have_the_two_encoders(reel):
    assert QueryEncoder(WeightStore(), reel._bridge.pieces).encode(LONG) is None
    found = reel.encode_fast(["soup", LONG])[1]
    np.testing.assert_array_equal(found.vectors, Reel(WeightStore())._fast_queries([LONG])[0].vectors)


def test_it_stands_for_one_sentence_encoder_alone(reel):
    encoder = QueryEncoder(WeightStore(), reel._bridge.pieces)
    shipped = reel.checkpoint
    assert encoder.stands_for(shipped)
    tuned = replace(shipped, card={**shipped.card, checkpoint.TUNED: {}}, digest="another file")
    assert encoder.stands_for(tuned)  # the same layers
    assert not encoder.stands_for(replace(shipped, digest="another file"))
    name, array = next(iter(shipped.encoder.items()))
    assert not encoder.stands_for(replace(tuned, encoder={**shipped.encoder, name: array + 1}))
    other = Reel(WeightStore())
    other.checkpoint = replace(shipped, digest="another file")
    assert other._query_encoder is None


def test_an_accelerator_encodes_exactly(monkeypatch):
    monkeypatch.setattr(model, "accelerated", lambda: True)
    assert Reel(WeightStore())._query_encoder is None


def test_a_damaged_file_is_named(reel, tmp_path):
    broken = tmp_path / "queries.safetensors"
    encoder = QueryEncoder(WeightStore(), reel._bridge.pieces, broken)
    for content in (None, b"", b"not weights", query_encoder.FILE.read_bytes()[:5000]):
        if content is not None:
            broken.write_bytes(content)
        with pytest.raises(WeightsCorrupt, match=r"queries\.safetensors"):
            encoder.stands_for(reel.checkpoint)


def test_what_is_exported_is_read_again(reel, tmp_path):
    arrays, card = query_encoder.read()
    query_encoder.export(tmp_path / "again.safetensors", arrays, card, reel.checkpoint)
    again, about = query_encoder.read(tmp_path / "again.safetensors")
    assert about["stands_for"] == card["stands_for"]
    for name, array in arrays.items():
        np.testing.assert_allclose(again[name], array, atol=1e-2 * np.abs(array).max())
