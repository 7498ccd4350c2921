"""TREC run files, as trec_eval, ranx and their kin read them.

A run has a line for each query and item found: `query Q0 item rank score tag`. Columns stand apart by white
space, so ids hold none. Which items are right stands in another file: see `qrels`.

The order within a query is that of the scores, as in trec_eval; the written rank is not looked at. Items of a
run are usually its best thousand: what is not among them was not found, and has an infinite rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError
from wordreel.evaluate.lines import check_id, fault, fresh_file, lines_of
from wordreel.evaluate.ranks import Ties, ranks_against
from wordreel.evaluate.retrieval import row_blocks
from wordreel.index.topk import topk_ids
from wordreel.types import Float64


@dataclass(frozen=True)
class Found:
    """What a run found for one query: ids and `scores [items]` in the order of the file."""

    query: str
    items: tuple[str, ...]
    scores: Float64


def write_run(
    path: Path,
    blocks: NDArray[Any] | Iterable[NDArray[Any]],
    query_ids: Sequence[str],
    item_ids: Sequence[str],
    *,
    k: int = 1000,
    tag: str = "wordreel",
) -> None:
    """Write the `k` best items of each query, best first; of equal scores the first in the gallery.

    `blocks` is a matrix `[queries, items]`, perhaps mapped, or its rows in blocks. Scores are written with
    all their digits, so reading them back gives the same ranks.
    """
    items = [check_id(name, "the item id") for name in item_ids]
    check_id(tag, "the tag")
    if len(set(items)) != len(items) or len(set(query_ids)) != len(query_ids):
        raise EvaluationError("ids of queries and of items must differ from one another")
    if k < 1:
        raise EvaluationError(f"a run keeps 1 item or more of each query, not {k}")
    rows = (rows for _, rows in row_blocks(blocks)) if isinstance(blocks, np.ndarray) else blocks
    done = 0
    with fresh_file(path) as file:
        for block in rows:
            if block.ndim != 2 or block.shape[1] != len(items) or done + len(block) > len(query_ids):
                raise EvaluationError(
                    f"the similarities must be [{len(query_ids)}, {len(items)}] for these ids; "
                    f"after {done} queries came {list(block.shape)}"
                )
            if not np.isfinite(block).all():
                raise EvaluationError(f"some similarities after query {done} are not finite")
            for query, best, row in zip(
                query_ids[done : done + len(block)], topk_ids(block, k), block, strict=True
            ):
                check_id(query, "the query id")
                file.writelines(
                    f"{query} Q0 {items[item]} {rank} {row[item]!s} {tag}\n"
                    for rank, item in enumerate(best.tolist(), 1)
                )
            done += len(block)
        if done != len(query_ids):
            raise EvaluationError(f"there are {len(query_ids)} query ids but similarities of {done} queries")


def read_run(path: Path) -> Iterator[Found]:
    """What was found for each query, one query at a time; lines of a query must stand together."""
    seen: set[str] = set()
    query, scores = "", dict[str, float]()
    for number, line in lines_of(path):
        columns = line.split()
        if len(columns) != 6:
            raise fault(
                path, number, f"a run has 6 columns (query Q0 item rank score tag), not {len(columns)}"
            )
        if columns[0] != query:
            if scores:
                yield _found(query, scores)
            query, scores = columns[0], {}
            if query in seen:
                raise fault(path, number, f"query {query!r} comes again; sort the file by its first column")
            seen.add(query)
        if columns[2] in scores:
            raise fault(path, number, f"query {query!r} has item {columns[2]!r} twice")
        scores[columns[2]] = _number(path, number, columns[4])
    if scores:
        yield _found(query, scores)


def _found(query: str, scores: Mapping[str, float]) -> Found:
    return Found(query, tuple(scores), np.fromiter(scores.values(), np.float64, len(scores)))


def _number(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise fault(path, number, f"the score {text!r} is not a finite number")
    return value


def run_ranks(
    found: Iterable[Found], qrels: Mapping[str, Mapping[str, int]], ties: Ties = "average"
) -> Float64:
    """`[queries of qrels]` rank of the best right answer of each query, in their order.

    Infinity where none was found, NaN where a query has no right answer. Queries without judgements do not
    count.

    >>> run = [Found("q1", ("v1", "v2"), np.array([0.9, 0.5])), Found("q2", ("v1",), np.array([0.4]))]
    >>> run_ranks(run, {"q1": {"v2": 1}, "q2": {"v2": 1}}).tolist()
    [2.0, inf]
    """
    place = {query: number for number, query in enumerate(qrels)}
    ranks = np.array(
        [np.inf if any(value > 0 for value in right.values()) else np.nan for right in qrels.values()]
    )
    for answer in found:
        right = qrels.get(answer.query, {})
        scores = [
            score for item, score in zip(answer.items, answer.scores, strict=True) if right.get(item, 0) > 0
        ]
        if scores:
            best = np.array([[max(scores)]])
            ranks[place[answer.query]] = ranks_against(answer.scores[None], best, ties)[0]
    return ranks
