"""Choose β without labels from a sample of a bank's queries and items; the choice is cached."""

from __future__ import annotations

import json
from contextlib import suppress

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.query_embeddings import bank_cache_dir
from wordreel.errors import NOT_WRITABLE
from wordreel.hubness import choose_beta_unlabelled, mixtures
from wordreel.hubness.beta import PUBLISHED, SPREADS
from wordreel.util.atomic import atomic_write, make_dir
from wordreel.util.even_sample import even_sample

QUERIES = 2_000
ITEMS = 4_000
FEWEST = 2  # queries that have a spread


def unlabelled_beta(embedded: EmbeddedBank) -> float:
    """Return β of `hubness.choose_beta_unlabelled` on at most 2,000 queries and 4,000 items, evenly spaced.

    The choice is cached until the bank changes; new videos alone do not change it.
    """
    if len(embedded.bank) < FEWEST or not len(embedded.searcher):
        return PUBLISHED
    path = bank_cache_dir(embedded.searcher.store, embedded.searcher.model, embedded.bank.name) / "beta.json"
    valid = {"revision": embedded.bank.revision, "spreads": SPREADS}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        known = json.loads(path.read_bytes())
        if valid.items() <= known.items():
            return float(known["beta"])
    live = embedded.gallery.live_rows
    queries, items = even_sample(len(embedded.bank), QUERIES), live[even_sample(len(live), ITEMS)]
    some = embedded.current()
    sims = mixtures(
        some.vectors[queries],
        some.weights[queries],
        embedded.gallery.vectors[items],
        embedded.gallery.available[items],
    ).read(0, len(queries))
    beta = choose_beta_unlabelled(sims)
    with suppress(*NOT_WRITABLE), embedded.searcher.store.writing():
        make_dir(path.parent)
        atomic_write(path, json.dumps({**valid, "beta": beta}).encode())
    return beta
