"""Concepts: what stands out of a moment."""

import numpy as np
from tests.models.joint.tiny import write_tower

from wordreel.models.joint import concepts
from wordreel.models.joint.concepts import NAMED, Concepts, read_concepts
from wordreel.models.joint.text_tower import TextTower


def vocabulary(names, means):
    count = len(names)
    vectors = np.eye(count, 512, dtype=np.float32)
    return Concepts(names, vectors, np.array(means, np.float32), np.full(count, 0.1, np.float32))


def test_a_concept_near_to_every_picture_does_not_win():
    known = vocabulary(("dog", "picture"), (0.0, 0.5))
    moment = np.zeros((1, 512), np.float32)
    moment[0, :2] = 0.4, 0.6
    (shown,) = known.shown(moment)
    np.testing.assert_allclose(shown, [4, 1], atol=1e-5)
    assert known.fitting(moment[0], shown) == ["dog"]


def test_what_fits_the_words_comes_first_and_no_word_twice():
    known = vocabulary(("beach", "walking dogs", "dog", "car", "tree"), (0,) * 5)
    moment = np.zeros((1, 512), np.float32)
    moment[0, :5] = 0.5, 0.48, 0.45, 0.4, 0.35
    (shown,) = known.shown(moment)
    sentence = np.zeros(512, np.float32)
    sentence[3] = 1
    names = known.fitting(sentence, shown)
    assert names == ["car", "beach", "walking dogs"]
    assert len(names) == NAMED


def test_moments_have_in_common_what_both_show():
    known = vocabulary(("dog", "beach", "car"), (0, 0, 0))
    assert known.common(np.array([5.0, 4.0, 1.0]), np.array([3.5, 2.0, 9.0])) == ["dog"]


def test_the_vocabulary_is_encoded_once_for_each_tower_and_adapter(tmp_path, monkeypatch):
    tower = TextTower(tmp_path, write_tower(tmp_path / "tower"))
    monkeypatch.setattr(concepts, "FOLDER", tmp_path)
    pictures = np.random.default_rng(0).normal(size=(20, 512))
    np.save(tmp_path / "reference.npy", pictures.astype(np.float16))
    encoded = []
    encode = tower.encode
    monkeypatch.setattr(tower, "encode", lambda texts: encoded.append(len(texts)) or encode(texts))
    first = read_concepts(tower, lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True), "a")
    again = read_concepts(tower, lambda rows: rows, "a")
    read_concepts(tower, lambda rows: rows, "b")
    assert encoded == [len(first.names)] * 2
    np.testing.assert_array_equal(first.mean, again.mean)
    unit = pictures.astype(np.float16).astype(np.float32)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(first.deviation, (first.vectors @ unit.T).std(axis=1), atol=1e-5)


def test_the_vocabulary_is_everyday_words():
    names = concepts.read_names()
    assert 2000 <= len(names) <= 4000
    assert len(set(names)) == len(names)
    assert {"dog", "beach", "playing a guitar", "walking on the beach"} <= set(names)
