"""Choose β without labels from a sample of a bank's queries and items; the choice is cached."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np

from wordreel.atomic import atomic_write, make_dir
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.query_embeddings import bank_cache_dir
from wordreel.errors import NOT_WRITABLE
from wordreel.hubness import choose_beta_unlabelled, mixtures

QUERIES = 2_000
ITEMS = 4_000
FEWEST = 2  # queries the rule can split
FALLBACK = 20.0  # the published default


def unlabelled_beta(embedded: EmbeddedBank) -> float:
    """The β of `hubness.choose_beta_unlabelled` on at most 2,000 queries and 4,000 items, evenly spaced.

    The choice is cached until the bank changes; new videos alone do not change it.
    """
    if len(embedded.bank) < FEWEST or not len(embedded.searcher):
        return FALLBACK
    path = bank_cache_dir(embedded.searcher.store, embedded.searcher.model, embedded.bank.name) / "beta.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_bytes())
        if known["revision"] == embedded.bank.revision:
            return float(known["beta"])
    live = embedded.gallery.live_rows
    queries, items = _spread(len(embedded.bank), QUERIES), live[_spread(len(live), ITEMS)]
    some = embedded.current()
    sims = mixtures(
        some.vectors[queries],
        some.weights[queries],
        embedded.gallery.vectors[items],
        embedded.gallery.available[items],
    ).read(0, len(queries))
    beta = choose_beta_unlabelled(sims).beta
    with suppress(*NOT_WRITABLE), embedded.searcher.store.writing():
        make_dir(path.parent)
        atomic_write(path, json.dumps({"revision": embedded.bank.revision, "beta": beta}).encode())
    return beta


def _spread(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)
