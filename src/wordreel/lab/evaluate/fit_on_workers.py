"""Fit a normalisation to a bank in blocks of its queries, on workers, and merge the states."""

from __future__ import annotations

import warnings
from functools import reduce
from pathlib import Path

from wordreel.banks.library_workers import has_mergeable_states, spans
from wordreel.errors import HubnessError, NextStep
from wordreel.hubness import Method, State
from wordreel.lab.evaluate.matrices import read_matrix
from wordreel.lab.evaluate.normalised_rankings import GalleryColumns
from wordreel.types import Bool
from wordreel.workers.executor import Executor


def fit_on(executor: Executor, path: Path, key: str | None, method: Method, columns: Bool | None) -> State:
    """Return the state of `method` for the bank in a file; what a fit in one process gives, to rounding.

    Each worker maps the file and reads its rows; only states, O(gallery) numbers each, travel.

    Args:
        executor: Its workers see the file at the same path.
        path: `[bank queries, gallery]` similarities.
        key: The array of the file, if it holds several.
        method: A normalisation with one bank whose states can be merged.
        columns: Which columns are gallery items; all if None.

    Raises:
        HubnessError: The states of the method cannot be merged.
    """
    if not has_mergeable_states(method):
        step = NextStep("leave out --on")
        raise HubnessError(f"{method.name!r} is not fitted in blocks that can be merged", step)
    rows = len(read_matrix(path, key))
    blocks = [(path.absolute(), key, method, columns, *span) for span in spans(rows, executor.count)]
    fitted = list(executor.map(_fit_rows, blocks))
    if texts := [text for _, texts in fitted for text in texts]:
        warnings.warn(texts[0], UserWarning, stacklevel=2)  # the blocks say the same with other figures
    return reduce(State.merge, (state for state, _ in fitted))


def _fit_rows(
    path: Path, key: str | None, method: Method, columns: Bool | None, start: int, stop: int
) -> tuple[State, list[str]]:
    """Return the state of some rows, and what the fit warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = method.fit(GalleryColumns(read_matrix(path, key)[start:stop], columns), device="auto")
    return state, [str(warning.message) for warning in caught]
