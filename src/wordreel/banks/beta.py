"""β without labels for a bank at work, from a sample of its queries and items; remembered in the cache."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np

from wordreel.atomic import atomic_write, make_dir
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.query_embeddings import bank_cache_dir
from wordreel.errors import LibraryBusy
from wordreel.hubness import choose_beta_unlabelled, mixtures

QUERIES = 2_000
ITEMS = 4_000
FEWEST = 2  # queries the rule can split
FALLBACK = 20.0  # the published default


def unlabelled_beta(work: EmbeddedBank) -> float:
    """The β of `hubness.choose_beta_unlabelled` on at most 2,000 queries and 4,000 items, evenly spaced.

    The choice is kept until the bank changes; new videos alone do not move it.
    """
    if len(work.bank) < FEWEST or not len(work.gallery.ids):
        return FALLBACK
    path = bank_cache_dir(work.searcher.store, work.searcher.model, work.bank.name) / "beta.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_bytes())
        if known["revision"] == work.bank.revision:
            return float(known["beta"])
    queries, items = _spread(len(work.bank), QUERIES), _spread(len(work.gallery.ids), ITEMS)
    some = work.current()
    sims = mixtures(
        some.vectors[queries],
        some.weights[queries],
        work.gallery.vectors[items],
        work.gallery.available[items],
    ).read(0, len(queries))
    beta = choose_beta_unlabelled(sims).beta
    with suppress(LibraryBusy), work.searcher.store.writing():
        make_dir(path.parent)
        atomic_write(path, json.dumps({"revision": work.bank.revision, "beta": beta}).encode())
    return beta


def _spread(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)
