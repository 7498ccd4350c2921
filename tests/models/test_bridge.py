import numpy as np
import pytest

from wordreel.models import bridge
from wordreel.models.base import EmbeddedClip
from wordreel.models.bridge import Bridge, ClassSpace, imagenet_kinds, softmax, unit
from wordreel.models.pooling import overlap, words_in
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Labels, Track, Words


class Pets:
    """Three classes in a plane; the first two lie close together."""

    names = ("cat", "kitten", "lorry")
    weight = np.array([[1.0, 0.2], [0.9, 0.3], [-1.0, 0.5]], np.float32)
    fingerprint = "pets"

    def labels(self, track):
        return Labels(self.names, track.values @ self.weight.T, track.times)


def space():
    sentences = np.stack([unit(np.array(row, np.float32)) for row in ([1, 0, 0], [0.9, 0.4, 0], [0, 0, 1])])
    return ClassSpace(Pets(), (sentences,), np.eye(3, dtype=np.float32))


def test_a_query_is_near_the_video_that_shows_its_class():
    pets = space()
    cat_words = np.array([1, 0, 0], np.float32)
    cat, lorry = pets.video(np.array([5, 4, -3], np.float32)), pets.video(np.array([-3, -2, 6], np.float32))
    asked = pets.queries(pets.chances(cat_words[None]))[0]
    assert asked @ cat > 0.5 > 0 > asked @ lorry
    assert pets.best(cat_words, np.array([[5, 4, -3], [1, 9, -3]], np.float32)) == ["cat", "cat"]


def test_chances_are_the_mean_of_the_wordings():
    first, second = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)[::-1].copy()
    both = ClassSpace(Pets(), (first, second), np.eye(3, dtype=np.float32))
    said = np.array([1, 0, 0], np.float32)
    expected = (softmax(first @ said / bridge.TEMPERATURE) + softmax(second @ said / bridge.TEMPERATURE)) / 2
    np.testing.assert_allclose(both.chances(said[None])[0], expected, rtol=1e-6)


def test_overlap_weighs_rows_by_shared_time():
    times = np.array([[0.0, 1.0], [1.0, 2.0], [5.0, 6.0]])
    assert overlap(times, Clip("", 0.5, 1.25)).tolist() == [0.5, 0.25, 0.0]
    assert overlap(times, Clip("", 0.0, 0.0, whole=True)).tolist() == [1, 1, 1]


def test_words_of_a_span():
    track = Track(
        np.zeros((1, 3), np.float32),
        np.array([[0.0, 4.0]]),
        (Words("go", 0, 1), Words("home", 1, 2), Words("x", 9, 10)),
    )
    assert words_in(track, 0.0, 4.0) == "go home"


def test_kinds_cover_the_dogs():
    kinds = imagenet_kinds()
    assert {kinds[number] for number in range(151, 269)} == {"a dog"}
    assert 999 not in kinds


def test_softmax_survives_large_numbers():
    assert softmax(np.array([1e30, 0.0], np.float32)).tolist() == [1.0, 0.0]


def test_a_zero_vector_stays_zero():
    assert unit(np.zeros(4, np.float32)).tolist() == [0, 0, 0, 0]


@pytest.fixture(scope="module")
def model():
    return Bridge(WeightStore())


def naive_embed(model, tracks, clip):
    """Row by row, second by second: the mean of the rows weighted by the time they share with the clip."""
    vectors = {}
    for expert, track in tracks.items():
        rows, times = model._rows(expert, track)
        total, weight = np.zeros(rows.shape[1]), 0.0
        for row, (start, end) in zip(rows, times, strict=True):
            shared = 1.0 if clip.whole else max(0.0, min(end, clip.end) - max(start, clip.start))
            total, weight = total + shared * row, weight + shared
        if weight:
            vectors[expert] = model._vector(expert, (total / weight).astype(np.float32))
    return vectors


def test_embedding_equals_the_plain_definition(model):
    rng = np.random.default_rng(0)
    seconds = np.arange(6.0)
    tracks = {
        "appearance": Track(
            rng.normal(size=(6, 1280)).astype(np.float32), np.stack([seconds, seconds + 1], 1)
        ),
        "speech": Track(rng.normal(size=(1, 384)).astype(np.float32), np.array([[4.0, 5.5]])),
    }
    clips = [Clip("x", 0, 6, whole=True), Clip("x", 0, 2.5), Clip("x", 2.5, 6)]
    vectors, available = model.embed(tracks, clips)
    for number, clip in enumerate(clips):
        expected = naive_embed(model, tracks, clip)
        for place, expert in enumerate(model.experts):
            assert available[number, place] == (expert in expected)
            if expert in expected:
                np.testing.assert_allclose(vectors[number, place], expected[expert], atol=1e-5)
                assert np.linalg.norm(vectors[number, place]) == pytest.approx(1, abs=1e-4)
            else:
                assert not vectors[number, place].any()


def test_queries_do_not_depend_on_their_neighbours(model):
    alone = model.encode(["a dog runs"])[0]
    together = model.encode(["a man plays the guitar", "a dog runs"])[1]
    np.testing.assert_allclose(alone.vectors, together.vectors, atol=1e-5)
    assert alone.text == "a dog runs"


def test_words_speak_of_the_right_classes(model):
    sentence = model._encoder.encode(["a dog runs in the park"])[0]
    appearance = model._spaces["appearance"]
    best = np.argsort(-appearance.chances(sentence[None])[0])[:20]
    assert np.mean([151 <= number <= 275 for number in best]) > 0.7
    sentence = model._encoder.encode(["a man plays the guitar"])[0]
    motion = model._spaces["motion"]
    assert motion.recogniser.names[int(np.argmax(motion.chances(sentence[None])))] == "playing guitar"


def test_what_is_remembered_of_a_query_is_what_its_words_say(model, monkeypatch):
    text = "a cook slices onions"
    for encoded in (model.encode([text])[0], model.encode([text])[0]):
        sentence = model._encoder.encode([text])[0]
        for row, expert in enumerate(("appearance", "motion", "sound")):
            space = model._spaces[expert]
            np.testing.assert_array_equal(
                encoded.vectors[row], space.queries(space.chances(sentence[None]))[0]
            )
    monkeypatch.setattr(ClassSpace, "chances", None)  # explaining works nothing out again
    track = Track(np.ones((1, 1280), np.float32), np.array([[0.0, 1.0]]))
    assert set(model.explain(encoded, {"appearance": track}, Clip("x", 0, 1))) == {"appearance"}


def test_what_two_clips_share(model):
    """The class with the largest product of what stands out in both, and the other's closest line."""
    rng = np.random.default_rng(1)
    seconds = np.arange(4.0)
    times = np.stack([seconds, seconds + 1], 1)
    lines = model._encoder.encode(["a dog barks", "the price of bread"])
    mine = {
        "appearance": Track(rng.normal(size=(4, 1280)).astype(np.float32), times),
        "speech": Track(model._encoder.encode(["the dog is loud"]), np.array([[0.0, 4.0]])),
        "motion": Track(rng.normal(size=(1, 1024)).astype(np.float32), np.array([[0.0, 4.0]])),
    }
    words = (Words("the price of bread", 0, 1), Words("a dog barks", 2, 3))
    theirs = {
        "appearance": Track(rng.normal(size=(4, 1280)).astype(np.float32), times),
        "speech": Track(lines[::-1].copy(), np.array([[0.0, 1.0], [2.0, 3.0]]), words),
    }
    one, two = Clip("x", 0, 4, whole=True), Clip("y", 0, 4)
    said = model.compare(mine, one, theirs, two)
    assert set(said) == {"appearance", "speech"}
    assert said["speech"] == ("“a dog barks”", (2.0, 3.0))
    space = model._spaces["appearance"]
    logits = [space.recogniser.labels(tracks["appearance"]).scores.mean(axis=0) for tracks in (mine, theirs)]
    products = [
        max(0.0, a - logits[0].mean()) * max(0.0, b - logits[1].mean()) for a, b in zip(*logits, strict=True)
    ]
    assert said["appearance"] == (space.recogniser.names[int(np.argmax(products))], None)
    assert set(model.compare(mine, one, theirs, Clip("y", 1.0, 2.0))) == {"appearance"}


def test_evidence_holds_the_part_of_a_track_that_a_clip_is_explained_with(model):
    lines = ["a dog barks", "the price of bread", "two cats", "a dog runs home"]
    times = np.array([[0.0, 2.0], [2.0, 4.0], [4.0, 6.0], [6.0, 8.0]])
    words = tuple(Words(line, *span) for line, span in zip(lines, times.tolist(), strict=True))
    tracks = {"speech": Track(model._encoder.encode(lines), times, words)}
    clips = [Clip("x", 2.5, 5.0), Clip("x", 0.0, 8.0, whole=True), Clip("x", 9.0, 10.0), Clip("x", 7.0, 9.0)]
    vectors = np.zeros((5, 384), np.float32)
    evidence = model.evidence([EmbeddedClip(tracks, clip, vectors) for clip in clips])
    assert [len(one.tracks["speech"]) if one.tracks else 0 for one in evidence] == [2, 4, 0, 1]
    assert [one.text for one in evidence[0].tracks["speech"].words] == lines[1:3]
    assert evidence[1].nbytes > evidence[0].nbytes > evidence[2].nbytes > 0
    query = model.encode(["a dog that barks"])[0]
    alone = [model.explain(query, tracks, clip) for clip in clips]
    assert model.explain_all(query, evidence) == alone
    assert alone[1] == {"speech": ("“a dog barks”", (0.0, 2.0))}


def test_queries_encoded_together_are_those_encoded_alone(model, monkeypatch):
    """Against the formula, for one text and one class at a time."""
    monkeypatch.setattr(bridge, "AT_ONCE", 2)
    texts = ["a dog runs", "somebody plays the piano", "", "rain on a roof", "a dog runs"]
    for text, query in zip(texts, model.encode(texts), strict=True):
        sentence = model._encoder.encode([text])[0].astype(np.float64)
        for row, expert in enumerate(model.experts):
            if expert in bridge.SENTENCES:
                np.testing.assert_allclose(query.vectors[row], sentence, atol=1e-6)
                continue
            space = model._spaces[expert]
            chances = np.zeros(len(space.basis))
            for wording in space.phrases:
                likely = [np.exp(float(vector @ sentence) / bridge.TEMPERATURE) for vector in wording]
                chances += np.array(likely) / sum(likely) / len(space.phrases)
            expected = (chances - chances.mean()) @ space.basis
            np.testing.assert_allclose(query.vectors[row], expected / np.linalg.norm(expected), atol=2e-5)
            known = model._cached_chances(text, model._encoder.encode([text])[0])[expert]
            np.testing.assert_allclose(known, chances, atol=1e-6)


def test_the_fingerprint_names_the_settings(model, monkeypatch):
    before = Bridge(WeightStore()).fingerprint
    assert before == model.fingerprint
    monkeypatch.setattr(bridge, "TEMPERATURE", 0.2)
    assert Bridge(WeightStore()).fingerprint != before


def test_clips_explained_together_are_explained_as_each_alone(model):
    rng = np.random.default_rng(3)
    times, dims = np.array([[0.0, 1.0], [1.0, 2.0]]), {"appearance": 1280, "motion": 1024, "sound": 1024}
    clips = [
        ({name: Track(rng.normal(size=(2, dims[name])).astype(np.float32), times) for name in names}, clip)
        for names, clip in (
            (("appearance", "motion"), Clip("x", 0.0, 1.5)),
            (("appearance",), Clip("y", 0.0, 2.0, whole=True)),
            (("motion", "sound"), Clip("z", 0.5, 2.0)),
            (("appearance", "motion"), Clip("w", 5.0, 6.0)),  # nothing seen there
            ((), Clip("v", 0.0, 1.0)),
        )
    ]
    query = model.encode(["a dog runs"])[0]
    embedded = [EmbeddedClip(*one, model.embed(one[0], [one[1]])[0][0]) for one in clips]
    together = model.explain_all(query, model.evidence(embedded))
    seen = model._logits(0, "appearance", embedded)
    assert list(seen) == [0, 1]
    for number, logits in seen.items():
        tracks, clip = clips[number]
        np.testing.assert_allclose(logits, model._mean("appearance", tracks["appearance"], clip), atol=1e-3)
    assert together == [model.explain(query, tracks, clip) for tracks, clip in clips]
    assert [set(one) for one in together] == [
        {"appearance", "motion"},
        {"appearance"},
        {"motion", "sound"},
        set(),
        set(),
    ]
