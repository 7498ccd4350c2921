import numpy as np

from wordreel.doctor import degenerate, run_checks
from wordreel.library.embeddings import Gallery
from wordreel.weights.store import WeightStore


def gallery(vectors):
    vectors = np.asarray(vectors, np.float32)
    return Gallery(np.arange(len(vectors)), vectors, np.ones(vectors.shape[:2], bool))


def states(vectors):
    return {finding.what: finding.state for finding in degenerate(gallery(vectors), ("eye",))}


def test_good_vectors_are_fine():
    assert states(np.random.default_rng(0).normal(size=(9, 1, 5))) == {"embeddings of eye": "ok"}


def test_an_expert_that_says_the_same_of_everything_is_an_error():
    assert states(np.tile(np.arange(5.0), (9, 1, 1))) == {"embeddings of eye": "error"}


def test_a_constant_vector_is_an_error():
    vectors = np.random.default_rng(0).normal(size=(9, 1, 5))
    vectors[3] = 0.25
    assert states(vectors) == {"embeddings of eye": "error"}


def test_numbers_that_are_none_are_an_error():
    vectors = np.random.default_rng(0).normal(size=(9, 1, 5))
    vectors[3, 0, 0] = np.nan
    assert states(vectors) == {"embeddings of eye": "error"}


def test_a_copy_of_a_video_is_no_error():
    vectors = np.random.default_rng(0).normal(size=(9, 1, 5))
    vectors[3] = vectors[4]
    assert states(vectors) == {"embeddings of eye": "ok"}


def test_missing_weights_are_an_error_that_names_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    assert not WeightStore().has("minilm")
    found = {finding.what: finding for finding in run_checks(tmp_path / "library")}
    assert found["expert appearance"].state == "error"
    assert found["expert senet154"].state == "note"
    assert found["sentence encoder"].next_step.command == "weights fetch"
    assert found["expert appearance"].next_step.command == "weights fetch efficientnet-lite2"
    assert found["library"].state == "note"
    assert found["python"].state == "ok"
