"""TREC run and qrels files, as trec_eval, ranx and other tools read them.

A run has a line per query and retrieved item: `query Q0 item rank score tag`. Columns are separated by white
space, so ids hold none. The order within a query is that of the scores, as in trec_eval; the written rank is
ignored. A run usually holds the best thousand items: the rank of an item that is not among them is infinite.

Qrels say which items are right, in TREC's four columns (`query 0 item relevance`, separated by white space)
or BEIR's three (`query-id corpus-id score`, separated by tabs, under that header). A relevance above 0 is a
right answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError
from wordreel.index.topk import topk_ids
from wordreel.lab.evaluate.text_lines import atomic_text_file, check_id, fault, lines_of
from wordreel.retrieval.caption_ranks import Captions, row_blocks
from wordreel.retrieval.ranks import Ties, ranks_against
from wordreel.types import Float64

Qrels = dict[str, dict[str, int]]  # query → item → relevance

QRELS_HEADER = ("query-id", "corpus-id", "score")


@dataclass(frozen=True)
class RetrievedItems:
    """What a run retrieved for one query: ids and `scores [items]` in the order of the file."""

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
    with atomic_text_file(path) as file:
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


def read_run(path: Path) -> Iterator[RetrievedItems]:
    """The items retrieved for each query, one query at a time; lines of a query must be neighbours."""
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
                yield _retrieved(query, scores)
            query, scores = columns[0], {}
            if query in seen:
                raise fault(path, number, f"query {query!r} comes again; sort the file by its first column")
            seen.add(query)
        if columns[2] in scores:
            raise fault(path, number, f"query {query!r} has item {columns[2]!r} twice")
        scores[columns[2]] = _number(path, number, columns[4])
    if scores:
        yield _retrieved(query, scores)


def _retrieved(query: str, scores: Mapping[str, float]) -> RetrievedItems:
    return RetrievedItems(query, tuple(scores), np.fromiter(scores.values(), np.float64, len(scores)))


def _number(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise fault(path, number, f"the score {text!r} is not a finite number")
    return value


def run_ranks(
    run: Iterable[RetrievedItems], qrels: Mapping[str, Mapping[str, int]], ties: Ties = "average"
) -> Float64:
    """`[queries of qrels]` rank of the best right answer of each query, in their order.

    Infinity where none was retrieved, NaN where a query has no right answer. Queries without judgements do
    not count.

    >>> first = RetrievedItems("q1", ("v1", "v2"), np.array([0.9, 0.5]))
    >>> second = RetrievedItems("q2", ("v1",), np.array([0.4]))
    >>> run_ranks([first, second], {"q1": {"v2": 1}, "q2": {"v2": 1}}).tolist()
    [2.0, inf]
    """
    position = {query: number for number, query in enumerate(qrels)}
    ranks = np.array(
        [np.inf if any(value > 0 for value in right.values()) else np.nan for right in qrels.values()]
    )
    for answer in run:
        right = qrels.get(answer.query, {})
        scores = [
            score for item, score in zip(answer.items, answer.scores, strict=True) if right.get(item, 0) > 0
        ]
        if scores:
            best = np.array([[max(scores)]])
            ranks[position[answer.query]] = ranks_against(answer.scores[None], best, ties)[0]
    return ranks


def write_qrels(
    path: Path, qrels: Mapping[str, Mapping[str, int]], style: Literal["trec", "beir"] = "trec"
) -> None:
    """Write judgements in one of the two styles."""
    line = "{} 0 {} {}\n" if style == "trec" else "{}\t{}\t{}\n"
    with atomic_text_file(path) as file:
        if style == "beir":
            file.write("\t".join(QRELS_HEADER) + "\n")
        for query, right in qrels.items():
            check_id(query, "the query id")
            file.writelines(
                line.format(query, check_id(item, "the item id"), value) for item, value in right.items()
            )


def read_qrels(path: Path) -> Qrels:
    """Judgements of either style, recognised by the header."""
    qrels: Qrels = {}
    has_header = False
    for number, line in lines_of(path):
        if not has_header and not qrels and line.split() == list(QRELS_HEADER):
            has_header = True
            continue
        if has_header:
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 3 or not all(columns):
                raise fault(
                    path, number, f"below this header are 3 columns separated by tabs, not {len(columns)}"
                )
        else:
            columns = line.split()
            if len(columns) != 4:
                raise fault(
                    path, number, f"qrels have 4 columns (query 0 item relevance), not {len(columns)}"
                )
            del columns[1]
        query, item, text = columns
        try:
            value = int(text)
        except ValueError:
            raise fault(path, number, f"the relevance {text!r} is not a whole number") from None
        if item in qrels.setdefault(query, {}):
            raise fault(path, number, f"query {query!r} has item {item!r} twice")
        qrels[query][item] = value
    if not qrels:
        raise EvaluationError(f"{path} holds no judgements")
    return qrels


def caption_qrels(
    captions: Captions, caption_ids: Sequence[str], video_ids: Sequence[str], *, backwards: bool = False
) -> Qrels:
    """The judgements of a captioned set: a caption's video, or, `backwards`, a video's captions.

    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> caption_qrels(arrange(1, 2), ["c1", "c2"], ["v"], backwards=True)
    {'v': {'c1': 1, 'c2': 1}}
    """
    if (len(caption_ids), len(video_ids)) != (len(captions), captions.videos):
        raise EvaluationError(
            f"{len(captions)} captions and {captions.videos} videos need as many ids, not "
            f"{len(caption_ids)} and {len(video_ids)}"
        )
    qrels: Qrels = {}
    for caption in np.flatnonzero(captions.valid).tolist():
        pair = caption_ids[caption], video_ids[captions.owner[caption]]
        query, item = pair[::-1] if backwards else pair
        qrels.setdefault(query, {})[item] = 1
    return qrels
