import hashlib
from pathlib import Path

import numpy as np
import pytest
from engines import Encoded, Kept, View, ask, contents_of, scores, searcher_of
from tests.lines import lines_with
from tests.models.joint.tiny import tiny_joint
from tests.search.conftest import ColourModel, store  # noqa: F401 - the fixture

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.lab.evaluate.library import score
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher
from wordreel.types import Track

TEXTS = ["red", "green and blue", "blue", "red"]
TOLD = {f"film{n}": [TEXTS[n % 4], TEXTS[(n + 1) % 4]] for n in range(6)}


def bytes_of(folder: Path):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.fixture
def library(store):  # noqa: F811
    return store.path


def test_a_view_scores_as_the_library_does_and_leaves_it_alone(library, tmp_path):
    before = bytes_of(library)
    model = ColourModel()
    found = ask(searcher_of(View(library, tmp_path / "cache"), model), TOLD)
    assert bytes_of(library) == before
    own = LibraryStore.open(library)
    embed_library(own, model)
    expected = score(Searcher.open(own, model), TOLD)
    np.testing.assert_array_equal(found.sims, expected.similarities)
    assert found.captions.owner.tolist() == expected.captions.owner.tolist()
    assert found.bank is None


def test_leaving_experts_out_is_as_if_they_had_never_looked(library, tmp_path):
    model = ColourModel()
    view = View(library, tmp_path / "cache", ["colour"])
    content = view.files()[0].content
    assert isinstance(view.track(content, "colour"), Track)
    assert not isinstance(view.track(content, "talk"), Track)
    searcher = searcher_of(view, model)
    assert not searcher.snapshot.gallery.available[:, 1].any()
    assert searcher.snapshot.gallery.available[:, 0].all()
    whole = searcher_of(View(library, tmp_path / "cache"), model)
    assert whole.snapshot.gallery.available[:, 1].any()  # another cache, not that of the part
    heard = whole.store.tracks(content)
    words = next(
        row.text
        for file in whole.store.files()
        if (t := whole.store.track(file.content, "talk"))
        for row in t.words
    )
    assert heard
    assert lines_with(whole.store, [words.split()[0]])
    assert not lines_with(searcher.store, [words.split()[0]])


def test_only_some_videos(library, tmp_path):
    model = ColourModel()
    view = View(library, tmp_path / "cache", only=["film1", "film3.mp4"])
    searcher = searcher_of(view, model)
    assert sorted(Path(path).name for path in searcher.snapshot.paths().values()) == [
        "film1.mp4",
        "film3.mp4",
    ]
    whole = searcher_of(View(library, tmp_path / "cache"), model)
    few = {"film1": 0, "film3": 0}
    np.testing.assert_array_equal(scores(searcher, TEXTS, few)[0], scores(whole, TEXTS, few)[0])
    assert contents_of(searcher, {"film1": 0, "film1.mp4": 0, "film2": 0}) == contents_of(whole, {"film1": 0})


def test_groups_of_videos_are_scored_in_one_pass(library, tmp_path):
    searcher = searcher_of(View(library, tmp_path / "cache"), ColourModel())
    groups = ({"film1": 0, "film4": 0}, {"film0": 0}, {"film4": 0, "gone": 0})
    together = scores(searcher, TEXTS, *groups)
    for group, found in zip(groups, together, strict=True):
        np.testing.assert_array_equal(found, scores(searcher, TEXTS, group)[0])
    asked = ask(searcher, {"film2": ["red", "blue"]}, groups[0])
    np.testing.assert_array_equal(asked.bank, scores(searcher, ["red", "blue"], groups[0])[0].T)


def test_texts_are_computed_once(tmp_path):
    asked = []

    def make(texts):
        asked.append(list(texts))
        return np.array([[len(text), text.count("a")] for text in texts], np.float32)

    kept = Kept(tmp_path / "k", make)
    np.testing.assert_array_equal(kept.rows(["aa", "b", "aa"]), [[2, 2], [1, 0], [2, 2]])
    other = Kept(tmp_path / "k", make)
    np.testing.assert_array_equal(other.rows(["b", "abc"]), [[1, 0], [3, 1]])
    assert asked == [["aa", "b"], ["abc"]]
    kept.rows(["abc"])  # what another has put there meanwhile
    assert len(asked) == 2
    (tmp_path / "k" / "half.npy").write_bytes(b"killed while writing")
    np.testing.assert_array_equal(Kept(tmp_path / "k", make).rows(["aa"]), [[2, 2]])


def test_encoded_queries_are_the_models_own(tmp_path):
    texts = ["a dog", "beach ", "a dog"]
    model = tiny_joint(tmp_path / "tiny")
    path = tmp_path / "tiny" / "model.safetensors"
    encoded = Encoded(WeightStore(tmp_path), tmp_path, path)
    encoded.prepare(texts)
    found = Encoded(WeightStore(tmp_path), tmp_path, path).encode([t.strip() for t in texts])
    assert encoded.fingerprint == model.fingerprint
    for mine, own in zip(found, model.encode([t.strip() for t in texts]), strict=True):
        np.testing.assert_allclose(mine.vectors, own.vectors, atol=1e-6)
        np.testing.assert_array_equal(mine.weights, own.weights)
