"""Indexes with files: opened if they are what was built, with the rows added since; otherwise built again."""

import json

import numpy as np
import pytest

from wordreel.index.base import Correction, QuerySample
from wordreel.index.cached import IndexCache, measure_recall
from wordreel.index.exact import ExactIndex
from wordreel.util.checksum import damaged_files


class Rough(ExactIndex):
    """Never returns the first row."""

    name = "rough"

    @property
    def exact(self):
        return False

    def search(self, vectors, weights, k, allowed=None, correction=None):
        allowed = np.ones(len(self), bool) if allowed is None else allowed.copy()
        allowed[0] = False
        return super().search(vectors, weights, k, allowed, correction)


class Builder:
    name = "rough"
    built = 0

    def build(self, folder, vectors, available, on_progress=None):
        self.built += 1
        (folder / "rows.bin").write_bytes(len(vectors).to_bytes(8, "little"))

    def open(self, folder, vectors, available):
        if int.from_bytes((folder / "rows.bin").read_bytes(), "little") != len(vectors):
            raise ValueError("other rows")
        return Rough(vectors, available)


@pytest.fixture
def items():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 2, 4)).astype(np.float32), np.ones((50, 2), bool)


def queries(count=6):
    rng = np.random.default_rng(1)
    return QuerySample(rng.normal(size=(count, 2, 4)).astype(np.float32), np.ones((count, 2), np.float32))


def test_a_built_index_is_opened_with_the_rows_added_since(tmp_path, items):
    vectors, available = items
    cache, builder = IndexCache(tmp_path / "index", 3), Builder()
    assert cache.open(builder, vectors, available) is None
    assert cache.stale(builder, 48)
    cache.build(builder, vectors[:48], available[:48])
    assert not cache.stale(builder, 50)
    assert cache.stale(builder, 60)
    index, asked = cache.open(builder, vectors, available), queries()
    assert len(index) == 50
    assert not index.exact
    allowed = np.arange(50) > 0
    for correction in (None, Correction(np.linspace(0, 1, 50).astype(np.float32), np.arange(50) % 2 == 0)):
        want = ExactIndex(vectors, available).search(asked.vectors, asked.weights, 5, allowed, correction)
        found = index.search(asked.vectors, asked.weights, 5, allowed, correction)
        np.testing.assert_array_equal(found.rows, want.rows)
        np.testing.assert_array_equal(found.corrected, want.corrected)
    assert IndexCache(tmp_path / "index", 4).open(builder, vectors, available) is None, "renumbered rows"
    assert cache.open(builder, vectors[:40], available[:40]) is None, "fewer rows than it holds"


@pytest.mark.parametrize("harm", ["manifest", "version", "file", "size", "content", "extra"])
def test_a_damaged_index_is_built_again(tmp_path, items, harm):
    vectors, available = items
    cache, builder = IndexCache(tmp_path, 0), Builder()
    built = cache.build(builder, vectors, available)
    file = tmp_path / built.folder / "rows.bin"
    if harm == "manifest":
        (tmp_path / "manifest.json").write_text("[]")
    elif harm == "version":  # an earlier one, with files of another layout
        manifest = json.loads((tmp_path / "manifest.json").read_bytes())
        (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": built.version - 1}))
    elif harm == "file":
        file.unlink()
    elif harm == "extra":
        (file.parent / "more.bin").write_bytes(b"x")
    else:
        file.write_bytes(b"short" if harm == "size" else bytes(8))
    assert cache.open(builder, vectors, available) is None
    cache.build(builder, vectors, available)
    assert len(cache.open(builder, vectors, available)) == 50
    assert builder.built == 2
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [built.folder]


def test_recall_is_the_share_of_the_true_best(items):
    vectors, available = items
    exact, rough, asked = ExactIndex(vectors, available), Rough(vectors, available), queries(40)
    true = exact.search(asked.vectors, asked.weights, 10).rows
    lost = float((true == 0).any(axis=1).mean())
    assert lost > 0
    measured = measure_recall(rough, exact, asked)
    assert measured.value == pytest.approx(1 - lost / 10)
    assert (measured.queries, measured.k) == (40, 10)
    assert measure_recall(exact, exact, asked).value == 1
    few = np.arange(50) < 3
    assert measure_recall(exact, exact, asked, few).value == 1, "three items are all there is"


def test_what_was_measured_is_saved_with_the_index(tmp_path, items):
    cache, builder = IndexCache(tmp_path, 0), Builder()
    built = cache.build(builder, *items)
    assert cache.read("rough").recall == {}
    exact = ExactIndex(*items)
    cache.state_recall(built, {"text": measure_recall(exact, exact, queries())})
    assert cache.read("rough").recall["text"].value == 1
    assert cache.read("other") is None
    assert json.loads((tmp_path / "manifest.json").read_bytes())["recall"]["text"]["queries"] == 6


def test_bits_that_flipped_are_found(tmp_path, items):
    cache, builder = IndexCache(tmp_path / "index", 3), Builder()
    built = cache.build(builder, *items)
    folder = tmp_path / "index" / built.folder
    assert damaged_files(folder) == []
    (folder / "rows.bin").write_bytes(b"\x33" + bytes(7))
    assert cache.read("rough") is not None  # the size is right
    assert len(damaged_files(folder)) == 1
