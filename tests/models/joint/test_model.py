"""The default model equals its definition, and says what it recognised."""

import numpy as np
import pytest
from tests.models.joint.tiny import direction, tiny_joint

from wordreel.errors import WeightsCorrupt
from wordreel.models.base import EmbeddedClip
from wordreel.models.joint import other_rows
from wordreel.models.joint.adapter import read_adapter, write_adapter
from wordreel.models.joint.concepts import Concepts, read_names
from wordreel.models.joint.model import EYES, ROW, WEIGHTS
from wordreel.models.joint.other_rows import EVERY, ROWS
from wordreel.models.similarity import mixture
from wordreel.types import Clip, Labels, Track, Words

WHOLE = Clip("x", 0.0, 4.0, whole=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    model = tiny_joint(tmp_path_factory.mktemp("joint"))
    names = ("dog", "beach", "playing a guitar", "kitchen")
    vectors = model.tower.encode(names)
    model.concepts = Concepts(names, vectors, np.zeros(4, np.float32), np.full(4, 0.1, np.float32))
    return model


def frames(*words):
    """A frame a second, each twice as long as a unit vector."""
    starts = np.arange(len(words), dtype=np.float64)
    return Track(2 * np.stack([direction(word) for word in words]), np.stack([starts, starts + 1], axis=1))


def lines(*texts):
    """A line a second."""
    words = tuple(Words(text, float(at), at + 1.0) for at, text in enumerate(texts))
    times = np.array([(line.start, line.end) for line in words])
    return Track(np.ones((len(words), 1), np.float32), times, words)


def everyday(model):
    """The mean vector of one in eight concepts."""
    return model.tower.encode(read_names()[::EVERY]).mean(axis=0)


def score(model, text, tracks, clips):
    (query,) = model.encode([text])
    vectors, available = model.embed(tracks, clips)
    return mixture(query.vectors[None], query.weights[None], vectors, available)[0]


def test_seen_is_the_adapted_mean_frame_weighted_by_time(model, tmp_path):
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(0, 1, (512, 512)), rng.normal(0, 1, 512)
    write_adapter(tmp_path / "a.safetensors", weight, bias, {})
    adapted = tiny_joint(tmp_path / "tower")
    adapted.adapter = read_adapter(tmp_path / "a.safetensors", tmp_path)
    mean = direction("dog") + 0.5 * direction("beach")
    expected = weight.astype(np.float16) @ (mean / np.linalg.norm(mean)) + bias.astype(np.float16)
    vectors, available = adapted.embed({EYES: frames("dog", "beach", "bus")}, [Clip("x", 0.0, 1.5)])
    np.testing.assert_allclose(vectors[0, 0], expected / np.linalg.norm(expected), atol=1e-5)
    assert available.tolist() == [[True, False, False, False]]


def test_a_query_is_encoded_once_for_all_rows(model):
    (query,) = model.encode(["a dog"])
    np.testing.assert_allclose(query.vectors, [direction("a", "dog")] * len(model.experts))
    assert query.weights == pytest.approx(list(WEIGHTS.values()))


@pytest.mark.parametrize("expert", ["speech", "ocr"])
def test_lines_are_the_mean_of_their_vectors_weighted_by_time(model, expert):
    tracks = {expert: lines("hello", "a dog", "bus")}
    vectors, available = model.embed(tracks, [Clip("x", 0.5, 2.0), Clip("x", 7.0, 8.0)])
    mean = (0.5 * direction("hello") + direction("a", "dog")) / 1.5 - everyday(model)
    row = 1 + ROWS.index(expert)
    np.testing.assert_allclose(vectors[0, row], mean / np.linalg.norm(mean), atol=1e-6)
    assert available[:, row].tolist() == [True, False]
    assert not vectors[1].any()


@pytest.fixture
def places(monkeypatch):
    class Places:
        names = ("airport terminal", "kitchen", "bus")

        def labels(self, track):
            return Labels(self.names, track.values, track.times)

    monkeypatch.setattr(other_rows.registry, "recogniser", lambda name, store: Places())
    monkeypatch.setattr(other_rows, "PLACES", 2)


def test_sound_is_the_mean_of_the_likeliest_places(model, places):
    heard = Track(np.log([[0.3, 0.6, 0.1]]).astype(np.float32), np.array([[0.0, 4.0]]))
    vectors, available = model.embed({"sound": heard}, [WHOLE])
    mean = direction("airport", "terminal") / 3 + direction("kitchen") * 2 / 3 - everyday(model)
    np.testing.assert_allclose(vectors[0, 3], mean / np.linalg.norm(mean), atol=1e-6)
    assert available.tolist() == [[False, False, False, True]]
    explained = model.explain(model.encode(["kitchen"])[0], {"sound": heard}, WHOLE)
    assert explained == {"sound": ("kitchen", None)}
    assert model.explain(model.encode(["dog"])[0], {"sound": heard}, WHOLE) == {}


def test_what_the_words_ask_for_is_found_by_pictures_words_and_lines(model):
    clips = [Clip("x", 0.0, 1.0), Clip("x", 1.0, 2.0)]
    assert score(model, "dog", {EYES: frames("dog", "bus")}, clips) == pytest.approx([1, 0], abs=1e-5)
    said = score(model, "dog", {"speech": lines("bus", "dog")}, clips)
    assert said[1] > 0.5 > abs(said[0])
    both = {EYES: frames("dog", "bus"), "speech": lines("bus", "dog")}
    own = np.array([[1, said[0]], [0, said[1]]])
    expected = own @ [WEIGHTS[ROW], WEIGHTS["speech"]] / (WEIGHTS[ROW] + WEIGHTS["speech"])
    assert score(model, "dog", both, clips) == pytest.approx(expected, abs=1e-5)


def test_reasons_name_what_stands_out_and_fits_the_words_first(model):
    tracks = {EYES: frames("beach", "dog"), "speech": lines("hello", "a dog")}
    for words, first in (("a dog", "dog, beach"), ("beach", "beach, dog")):
        explained = model.explain(model.encode([words])[0], tracks, WHOLE)
        at = 1.0 if words == "a dog" else 0.0
        assert explained[ROW] == (first, (at, at + 1))
        assert explained.get("speech") == (("“a dog”", (1.0, 2.0)) if words == "a dog" else None)


def test_explaining_a_page_equals_explaining_each_hit(model):
    """The slow twin of `explain_all`."""
    tracks = {EYES: frames("beach", "dog", "kitchen"), "ocr": lines("hello", "bus", "a dog")}
    clips = [Clip("x", 0.0, 1.0), Clip("x", 1.0, 3.0), WHOLE, Clip("x", 9.0, 10.0)]
    (query,) = model.encode(["a dog"])
    vectors, _ = model.embed(tracks, clips)
    read = model.evidence([EmbeddedClip(tracks, c, own) for c, own in zip(clips, vectors, strict=True)])
    assert model.explain_all(query, read) == [model.explain(query, tracks, clip) for clip in clips]
    assert all(evidence.nbytes >= 1024 for evidence in read)


def test_a_picture_has_no_time(model):
    picture = Track(direction("dog")[None], np.zeros((1, 2)))
    still = Clip("x", 0.0, 0.0, whole=True)
    assert model.explain(model.encode(["dog"])[0], {EYES: picture}, still)[ROW] == ("dog", None)


def test_two_clips_are_compared_by_what_both_show(model):
    one, other = {EYES: frames("dog", "beach")}, {EYES: frames("kitchen", "dog")}
    assert model.compare(one, WHOLE, other, WHOLE) == {ROW: ("dog", (1.0, 2.0))}
    assert model.compare(one, WHOLE, {}, WHOLE) == {}
    said = {"speech": lines("a dog")}, {"speech": lines("hello", "dog")}
    assert model.compare(said[0], WHOLE, said[1], WHOLE) == {"speech": ("“dog”", (1.0, 2.0))}


def test_a_damaged_adapter_says_what_to_do(tmp_path):
    for name, data in (("missing", None), ("damaged", b"\x00" * 64)):
        path = tmp_path / name
        if data:
            path.write_bytes(data)
        with pytest.raises(WeightsCorrupt, match=r"not an adapter.*install wordreel again"):
            read_adapter(path, tmp_path)
    write_adapter(tmp_path / "small", np.eye(3), np.zeros(3), {})
    with pytest.raises(WeightsCorrupt, match="shape"):
        read_adapter(tmp_path / "small", tmp_path)


def test_a_track_is_described_by_what_stands_out_of_it(model):
    assert model.standing_out(frames("dog", "dog", "bus")) == ["dog"]
