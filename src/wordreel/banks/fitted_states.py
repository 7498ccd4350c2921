"""Methods fitted to a bank and a library's items: cached, and updated rather than fitted again.

New videos cost one pass over the bank, new bank queries one pass over the items. A state that has followed
few changes is written again when there are more. Where a state cannot follow (a bank query was removed, most
of the items are new, Sinkhorn), it is fitted from the start.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.catalogue.banks import Bank
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embedding_cache import Gallery
from wordreel.errors import NOT_WRITABLE, HubnessError
from wordreel.hubness.blocks import SimilaritySource
from wordreel.hubness.method import Method
from wordreel.hubness.state import State, load_state, read_extra, save_state
from wordreel.types import Bool, Float32, Int64
from wordreel.util.atomic import make_dir

AT_ONCE = 4_096  # new items fitted in one step
FEW_CHANGES = 1 / 500  # of the items: a state that followed them is not written
FITTED_AT_ONCE = 32_768  # items of a fit from the start

FitBank = Callable[[Int64, BankEmbeddings, Gallery, Method], State]
"""Fits a method to some queries of a bank and the live items of a gallery, from the start: `fit_queries`."""


@dataclass(frozen=True, eq=False)
class FittedState:
    """A state over the clips `items`, fitted with the bank queries `queries`, each in the state's order."""

    state: State
    items: Int64
    queries: Int64

    def rows_of(self, ids: Int64) -> Int64:
        """Return where the clips `ids` are in the state; -1 for others."""
        if np.array_equal(self.items, ids):
            return np.arange(len(ids))
        return find_ids(self.items, ids)

    def bias(self, ids: Int64) -> Float32:
        """Return what the index subtracts, for clips in this order; 0 for those not in the state."""
        rows = self.rows_of(ids)
        return np.where(rows >= 0, self.state.bias()[rows], np.float32(0))

    def active(self, ids: Int64) -> Bool:
        """Return which clips open the gate, in this order."""
        rows = self.rows_of(ids)
        return np.asarray((rows >= 0) & self.state.activation[rows])


def find_ids(ids: Int64, wanted: Int64) -> Int64:
    """Return where each of `wanted` is in `ids`; -1 where it is not.

    >>> find_ids(np.array([7, 3, 5]), np.array([5, 4, 7])).tolist()
    [2, -1, 0]
    """
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    if (ids[1:] > ids[:-1]).all():  # nearly always: clips are embedded in the order of their ids
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    else:
        order = np.argsort(ids, kind="stable")
        at = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where(ids[at] == wanted, at, -1)


def load_or_fit(
    store: LibraryStore,
    folder: Path,
    bank: Bank,
    vectors: BankEmbeddings,
    gallery: Gallery,
    method: Method,
    fit: FitBank | None = None,
) -> FittedState:
    """Return the state of `method` for a bank and gallery: from the cache, brought up to date, or fitted."""
    path = folder / file_name(method)
    before = _read(path, method)
    now = update_or_fit(before, bank, vectors, gallery, method, fit)
    if now is not before and (before is None or _worth_saving(before, now)):
        with suppress(*NOT_WRITABLE), store.writing():
            make_dir(folder)
            save_state(now.state, path, {"items": now.items, "queries": now.queries})
    return now


def _worth_saving(before: FittedState, now: FittedState) -> bool:
    """Whether following again would cost the next process more than writing all of it costs this one."""
    if not np.array_equal(before.queries, now.queries):
        return True
    new = int((now.items > before.items.max(initial=-1)).sum())  # ids of clips only grow
    gone = len(before.items) + new - len(now.items)
    return new + gone > FEW_CHANGES * len(now.items)


def update_or_fit(
    before: FittedState | None,
    bank: Bank,
    vectors: BankEmbeddings,
    gallery: Gallery,
    method: Method,
    fit: FitBank | None = None,
) -> FittedState:
    """Return `before` itself if nothing changed.

    Otherwise return what a new fit would give, to rounding.

    `fit` fits from the start somewhere else than in this process.
    """
    wanted = np.array(bank.ids, np.int64)
    if before is not None:
        items = gallery.live_ids
        same = np.array_equal(before.items, items) or np.array_equal(np.sort(before.items), np.sort(items))
        if same and np.array_equal(np.sort(before.queries), np.sort(wanted)):
            return before
        if method.streaming and np.isin(before.queries, wanted).all():
            with suppress(KeyError, HubnessError):  # too much has changed: fit again
                return _Follower(vectors, gallery).follow(before, wanted)
    state = (fit or fit_queries)(wanted, vectors, gallery, method)
    return FittedState(state, gallery.live_ids, wanted)


def fit_queries(queries: Int64, vectors: BankEmbeddings, gallery: Gallery, method: Method) -> State:
    """Fit one method from the start to these queries of a bank."""
    return _fit_many(queries, vectors, gallery, [method])[0]


def fit_all(
    bank: Bank, vectors: BankEmbeddings, gallery: Gallery, methods: Sequence[Method]
) -> list[FittedState]:
    """Fit every method from the start, those that can in one pass over the similarities.

    A method that can follow sees `FITTED_AT_ONCE` items at a time: the items need not fit into memory.
    """
    wanted = np.array(bank.ids, np.int64)
    states = _fit_many(wanted, vectors, gallery, methods)
    return [FittedState(state, gallery.live_ids, wanted) for state in states]


def _fit_many(
    queries: Int64, vectors: BankEmbeddings, gallery: Gallery, methods: Sequence[Method]
) -> list[State]:
    from wordreel.hubness.fit import fit_many

    follower, items = _Follower(vectors, gallery), gallery.live_ids
    shared = [method for method in methods if method.streaming]
    first = follower.sims(queries, items[:FITTED_AT_ONCE])
    states = fit_many(shared, first, device="auto") if shared else []
    for start in range(FITTED_AT_ONCE, len(items), FITTED_AT_ONCE):
        if shared:
            sims = follower.sims(queries, items[start : start + FITTED_AT_ONCE])
            states = [state.extend(sims) for state in states]
    fitted = iter(states)
    return [
        next(fitted) if method in shared else method.fit(follower.sims(queries, items), device="auto")
        for method in methods
    ]


@dataclass(frozen=True)
class _Follower:
    """Computes the similarities that a state needs to follow its bank and its items."""

    vectors: BankEmbeddings
    gallery: Gallery

    def sims(self, queries: Int64, items: Int64) -> SimilaritySource:
        """Return similarities `[queries, items]`, both named by id, computed as they are read."""
        from wordreel.hubness.similarity_sources import mixtures

        some = self.vectors.of(queries)
        rows = find_ids(self.gallery.ids, items)
        return mixtures(some.vectors, some.weights, self.gallery.vectors[rows], self.gallery.available[rows])

    def follow(self, before: FittedState, wanted: Int64) -> FittedState:
        items = self.gallery.live_ids
        gone = find_ids(items, before.items) < 0
        fresh = items[find_ids(before.items, items) < 0]
        if gone.all() or len(fresh) > len(items) // 2:
            raise HubnessError("mostly new: a fit from the start is cheaper")
        now = before
        if gone.any():
            left = before.items[~gone]
            now = FittedState(now.state.remove(np.flatnonzero(gone)), left, before.queries)
        new = wanted[~np.isin(wanted, now.queries)]
        if len(new):
            state = now.state.add(self.sims(new, now.items))
            now = FittedState(state, now.items, np.concatenate([now.queries, new]))
        for start in range(0, len(fresh), AT_ONCE):
            some = fresh[start : start + AT_ONCE]
            state = now.state.extend(self.sims(now.queries, some))
            now = FittedState(state, np.concatenate([now.items, some]), now.queries)
        return now


def file_name(method: Method) -> str:
    """Return the name of the file of a method and its parameters.

    >>> from wordreel.hubness import make_method
    >>> file_name(make_method("cent"))
    'cent-Centring.safetensors'
    """
    words = re.sub(r"[^A-Za-z0-9.=]+", "-", repr(method)).strip("-")
    if len(words) > 80:
        words = hashlib.sha256(words.encode()).hexdigest()[:16]
    return f"{method.name}-{words}.safetensors"


def _read(path: Path, method: Method) -> FittedState | None:
    """Read a cached state; None if there is none or it is not whole."""
    try:
        state = load_state(path)
    except HubnessError:
        return None
    notes = read_extra(path)
    if set(notes) != {"items", "queries"} or state.method != method:
        return None
    if len(notes["items"]) != state.items or len(notes["queries"]) != state.bank_size:
        return None
    return FittedState(state, notes["items"].astype(np.int64), notes["queries"].astype(np.int64))
