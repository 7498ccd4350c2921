"""Exchange with other evaluation tools: TREC run and qrels files, as trec_eval and ranx read them.

A captioned set becomes queries `VIDEO#0`, `VIDEO#1`, … (the captions) and items (the videos); for video to
text the other way round.

A run has a line per query and retrieved item: `query Q0 item rank score tag`. Columns are separated by white
space, so ids hold none. The order within a query is that of the scores, as in trec_eval; the written rank is
ignored. A run usually holds the best thousand items: the rank of an item that is not among them is infinite.

Qrels say which items are right, in TREC's four columns (`query 0 item relevance`, separated by white space)
or BEIR's three (`query-id corpus-id score`, separated by tabs, under that header). A relevance above 0 is a
right answer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import IO

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.hubness import Direction
from wordreel.index.topk import topk_ids
from wordreel.lab.evaluate.runs import EvaluationRun
from wordreel.retrieval.caption_ranks import Captions, row_blocks
from wordreel.retrieval.ranks import ranks_against
from wordreel.types import Array, Float64
from wordreel.util.text_files import read_lines

Qrels = dict[str, dict[str, int]]  # query → item → relevance

Retrieved = tuple[str, dict[str, float]]
"""What a run retrieved for one query: the query, and item → score in the order of the file."""

QRELS_HEADER = ("query-id", "corpus-id", "score")
UNKNOWN = "unknown"  # the post-processing of a run that somebody else made


@contextmanager
def atomic_text_file(path: Path) -> Iterator[IO[str]]:
    """Yield a text file to write, which gets its name when all is well."""
    partial = path.with_name(f".{path.name}.new")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        raise EvaluationError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def line_fault(path: Path, number: int, what: str) -> EvaluationError:
    """Return an error that names the file and the line."""
    return EvaluationError(f"{path}, line {number}: {what}")


def _check_id(name: str, what: str) -> str:
    """Refuse white space, which would split an id in two when it is read."""
    if not name or name.split() != [name]:
        raise EvaluationError(f"{what} {name!r} is empty or holds white space, which these files cannot hold")
    return name


def write_run(
    path: Path, scores: Array, query_ids: Sequence[str], item_ids: Sequence[str], *, k: int = 1000
) -> None:
    """Write the `k` best items of each query, best first; of equal scores the first in the gallery.

    `scores [queries, items]` are written with all their digits, so reading them back gives the same ranks.
    """
    items = [_check_id(name, "the item id") for name in item_ids]
    if len(set(items)) != len(items) or len(set(query_ids)) != len(query_ids):
        raise EvaluationError("ids of queries and of items must differ from one another")
    if scores.shape != (len(query_ids), len(items)):
        raise EvaluationError(
            f"the similarities must be [{len(query_ids)}, {len(items)}] for these ids, "
            f"not {list(scores.shape)}"
        )
    with atomic_text_file(path) as file:
        for span, block in row_blocks(scores):
            if not np.isfinite(block).all():
                raise EvaluationError(f"some similarities after query {span.start} are not finite")
            for query, best, row in zip(query_ids[span], topk_ids(block, k), block, strict=True):
                _check_id(query, "the query id")
                file.writelines(
                    f"{query} Q0 {items[item]} {rank} {row[item]!s} wordreel\n"
                    for rank, item in enumerate(best.tolist(), 1)
                )


def read_run(path: Path) -> Iterator[Retrieved]:
    """Yield the items retrieved for each query; lines of a query must be neighbours."""
    seen: set[str] = set()
    query, scores = "", dict[str, float]()
    for number, line in read_lines(path):
        columns = line.split()
        if len(columns) != 6:
            raise line_fault(
                path, number, f"a run has 6 columns (query Q0 item rank score tag), not {len(columns)}"
            )
        if columns[0] != query:
            if scores:
                yield query, scores
            query, scores = columns[0], {}
            if query in seen:
                raise line_fault(
                    path, number, f"query {query!r} comes again; sort the file by its first column"
                )
            seen.add(query)
        if columns[2] in scores:
            raise line_fault(path, number, f"query {query!r} has item {columns[2]!r} twice")
        try:
            scores[columns[2]] = float(columns[4])
        except ValueError:
            scores[columns[2]] = math.nan
        if not math.isfinite(scores[columns[2]]):
            raise line_fault(path, number, f"the score {columns[4]!r} is not a finite number")
    if scores:
        yield query, scores


def run_ranks(run: Iterable[Retrieved], qrels: Mapping[str, Mapping[str, int]]) -> Float64:
    """Return `[queries of qrels]` rank of the best right answer of each query, in their order.

    Infinity where none was retrieved, NaN where a query has no right answer. Queries without judgements do
    not count.

    >>> retrieved = [("q1", {"v1": 0.9, "v2": 0.5}), ("q2", {"v1": 0.4})]
    >>> run_ranks(retrieved, {"q1": {"v2": 1}, "q2": {"v2": 1}}).tolist()
    [2.0, inf]
    """
    position = {query: number for number, query in enumerate(qrels)}
    ranks = np.array(
        [np.inf if any(value > 0 for value in right.values()) else np.nan for right in qrels.values()]
    )
    for query, scores in run:
        right = [score for item, score in scores.items() if qrels.get(query, {}).get(item, 0) > 0]
        if right:
            row, best = np.array([list(scores.values())]), np.array([[max(right)]])
            ranks[position[query]] = ranks_against(row, best)[0]
    return ranks


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgements in TREC's columns."""
    with atomic_text_file(path) as file:
        for query, right in qrels.items():
            _check_id(query, "the query id")
            file.writelines(
                f"{query} 0 {_check_id(item, 'the item id')} {value}\n" for item, value in right.items()
            )


def read_qrels(path: Path) -> Qrels:
    """Return the judgements of a file in either style, recognised by the header."""
    qrels: Qrels = {}
    columns_wanted = "qrels have 4 columns (query 0 item relevance)"
    delimiter, count = None, 4
    for number, line in read_lines(path):
        if delimiter is None and not qrels and line.split() == list(QRELS_HEADER):
            columns_wanted = "below this header are 3 columns separated by tabs"
            delimiter, count = "\t", 3
            continue
        columns = [column.strip() for column in line.split(delimiter)]
        if len(columns) != count or not all(columns):
            raise line_fault(path, number, f"{columns_wanted}, not {len(columns)}")
        query, item, text = columns[0], columns[-2], columns[-1]
        try:
            value = int(text)
        except ValueError:
            raise line_fault(path, number, f"the relevance {text!r} is not a whole number") from None
        if item in qrels.setdefault(query, {}):
            raise line_fault(path, number, f"query {query!r} has item {item!r} twice")
        qrels[query][item] = value
    if not qrels:
        raise EvaluationError(f"{path} holds no judgements")
    return qrels


def caption_qrels(
    captions: Captions, caption_ids: Sequence[str], video_ids: Sequence[str], *, backwards: bool = False
) -> Qrels:
    """Return the judgements of a captioned set: a caption's video, or, `backwards`, a video's captions.

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


@dataclass(frozen=True)
class CaptionedExport:
    """A captioned set for other programs.

    Attributes:
        captions: Captions that are not valid are left out.
        videos: The names of the videos; numbers where there are none.
        direction: Whether captions look for videos or videos for captions.

    >>> from tempfile import TemporaryDirectory
    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> export = CaptionedExport(arrange(2, 4), ["dog", "cat"])
    >>> with TemporaryDirectory() as folder:
    ...     export.write_qrels(Path(folder) / "qrels.txt")
    ...     (Path(folder) / "qrels.txt").read_text().splitlines()
    ['dog#0 0 dog 1', 'dog#1 0 dog 1', 'cat#0 0 cat 1', 'cat#1 0 cat 1']
    """

    captions: Captions
    videos: Sequence[str] = ()
    direction: Direction = Direction.TEXT_TO_VIDEO

    @cached_property
    def video_ids(self) -> list[str]:
        """The ids of the videos: their names, without white space."""
        return [
            "_".join(name.split()) for name in self.videos or [f"v{n}" for n in range(self.captions.videos)]
        ]

    @cached_property
    def caption_ids(self) -> list[str]:
        """The ids of the captions: their video's and a number."""
        numbers = defaultdict[int, Iterator[int]](count)
        owners = self.captions.owner.tolist()
        return [f"{self.video_ids[owner]}#{next(numbers[owner])}" for owner in owners]

    @property
    def backwards(self) -> bool:
        """Whether videos look for captions."""
        return self.direction is Direction.VIDEO_TO_TEXT

    @property
    def qrels(self) -> Qrels:
        """The right answers of each query."""
        return caption_qrels(self.captions, self.caption_ids, self.video_ids, backwards=self.backwards)

    def write_run(self, path: Path, scores: Array, k: int = 1000) -> None:
        """Write the `k` best items of each query of `scores [captions, videos]` as a TREC run."""
        valid = np.flatnonzero(self.captions.valid)
        names = [self.caption_ids[caption] for caption in valid]
        rows = scores if len(valid) == len(self.captions) else scores[valid]
        if self.backwards:
            write_run(path, rows.T, self.video_ids, names, k=k)
        else:
            write_run(path, rows, names, self.video_ids, k=k)

    def write_qrels(self, path: Path) -> None:
        """Write which items answer which query, as TREC qrels."""
        write_qrels(path, self.qrels)


def evaluate_run(run: Path, qrels: Qrels, direction: Direction = Direction.TEXT_TO_VIDEO) -> EvaluationRun:
    """Return the ranks of a TREC run's right answers, for the same tables as any other evaluation.

    Args:
        run: A TREC run file.
        qrels: Query → item → relevance (`read_qrels`). Queries without qrels do not count.
        direction: Whether captions look for videos or videos for captions.

    Returns:
        The run; its gallery are the items that the run and the qrels name, and answers that were not
        retrieved have an infinite rank.

    Raises:
        EvaluationError: A file is malformed, or no query has a right answer.
    """
    retrieved = list(read_run(run))
    named = {item for _, scores in retrieved for item in scores} | {
        i for right in qrels.values() for i in right
    }
    protocol = "" if direction is Direction.TEXT_TO_VIDEO else "ce"
    return EvaluationRun(direction, protocol, UNKNOWN, len(named), run_ranks(retrieved, qrels))
