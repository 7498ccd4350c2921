"""Embedding and fitting on workers give what one process gives."""

import numpy as np
import pytest
from tests.search.conftest import ColourModel, store  # noqa: F401 - the fixture

from wordreel.banks import library_workers
from wordreel.banks.fitted_states import fit_queries
from wordreel.banks.library_workers import LibraryWorkers, OpenModel
from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.catalogue.tracks import open_tracks
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.errors import LibraryError, WeightsError
from wordreel.hubness import make_method
from wordreel.models.model_store import DEFAULT
from wordreel.workers.executor import Executor, Outcome


class HereWorker:
    """Runs calls in this process."""

    def wait_ready(self) -> None: ...
    def stop(self) -> None: ...
    def call(self, function, args, on_event) -> Outcome:
        return Outcome.of(function, *args)


def unit(rng, count):
    """Queries of two experts."""
    made = rng.normal(size=(count, 2, 3)).astype(np.float32)
    return made / np.linalg.norm(made, axis=2, keepdims=True)


@pytest.fixture
def workers(store, monkeypatch):  # noqa: F811
    monkeypatch.setattr(library_workers, "VIDEOS", 2)
    with Executor(lambda number: HereWorker(), 2) as executor:
        yield LibraryWorkers(executor, store, ColourModel(), ColourModel)


def test_embeddings_are_those_of_one_process(workers, store):  # noqa: F811
    cache = embedding_cache(store, workers.model)
    embed_library(store, workers.model)
    here = cache.load()
    expected = here.ids.copy(), here.vectors.copy(), here.available.copy()
    cache.clear()
    assert embed_library(store, workers.model, embed_videos=workers.embed_videos) == len(expected[0])
    there = cache.load()
    for one, other in zip(expected, (there.ids, there.vectors, there.available), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["is", "dis", "csls", "nnn", "cent", "sinkhorn"])
def test_a_bank_fitted_in_blocks_is_fitted_as_a_whole(workers, store, name):  # noqa: F811
    embed_library(store, workers.model)
    store.remove([store.files()[2].path])
    gallery, _ = embedding_cache(store, workers.model).open()
    assert gallery.live is not None
    rng = np.random.default_rng(0)
    vectors = BankEmbeddings(np.arange(100, 130), unit(rng, 30), np.ones((30, 2), np.float32))
    method, queries = make_method(name), np.arange(129, 103, -1)
    one = fit_queries(queries, vectors, gallery, method)
    many = workers.fit(queries, vectors, gallery, method)
    assert (many.bank_size, many.items) == (one.bank_size, one.items)
    np.testing.assert_allclose(many.bias(), one.bias(), rtol=1e-5, atol=1e-6)
    if method.gated:
        np.testing.assert_array_equal(many.activation, one.activation)


def test_other_embeddings_are_not_fitted(workers, store):  # noqa: F811
    embed_library(store, workers.model)
    gallery, _ = embedding_cache(store, workers.model).open()
    vectors = BankEmbeddings(np.arange(3), np.ones((3, 2, 3), np.float32), np.ones((3, 2), np.float32))
    embedding_cache(store, workers.model).clear()
    with pytest.raises(LibraryError, match="does not see the embeddings"):
        workers.fit(np.arange(3), vectors, gallery, make_method("cent"))


def test_another_model_is_refused(tmp_path):
    with pytest.raises(WeightsError, match="has not the model"):
        OpenModel(tmp_path, tmp_path, "no-such-backbone", "0123456789abcdef")()


def test_workers_find_the_model_and_the_tracks_by_address(workers, store):  # noqa: F811
    opened = LibraryWorkers.of(workers.executor, store, library_workers.WeightStore(), workers.model)
    assert opened.open_model.key == DEFAULT
    assert open_tracks(store.track_files.address).address == store.track_files.address
