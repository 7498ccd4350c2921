"""Exchange with other evaluation tools: export a ranking as TREC or BEIR files, measure a foreign run.

A captioned set becomes queries `VIDEO#0`, `VIDEO#1`, … (the captions) and items (the videos); for video to
text the other way round. A BEIR folder, which MTEB reads too, has `corpus.jsonl`, `queries.jsonl` and
`qrels/test.tsv`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path

import numpy as np

from wordreel.errors import EvaluationError, NextStep
from wordreel.hubness import Direction
from wordreel.lab.evaluate.runs import EvaluationRun
from wordreel.lab.evaluate.trec import (
    Qrels,
    atomic_text_file,
    caption_qrels,
    line_fault,
    read_qrels,
    read_run,
    run_ranks,
    write_qrels,
    write_run,
)
from wordreel.retrieval.caption_ranks import Captions
from wordreel.types import Array
from wordreel.util.text_files import read_lines

QRELS = Path("qrels") / "test.tsv"
UNKNOWN = "unknown"  # the post-processing of a run that somebody else made


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

    def write_beir(self, folder: Path, texts: Sequence[str] = ()) -> None:
        """Write queries, corpus and qrels as a BEIR folder; without texts an id stands for its text."""
        words = texts or self.caption_ids
        lines = {self.caption_ids[n]: words[n] for n in np.flatnonzero(self.captions.valid).tolist()}
        videos = {name: name for name in self.video_ids}
        try:
            (folder / QRELS).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvaluationError(f"{folder} cannot be written: {error.strerror or error}") from None
        queries, corpus = (videos, lines) if self.backwards else (lines, videos)
        write_texts(folder / "queries.jsonl", queries)
        write_texts(folder / "corpus.jsonl", corpus, titles={})
        write_qrels(folder / QRELS, self.qrels, style="beir")


def read_judgements(path: Path) -> tuple[Qrels, int | None]:
    """Qrels from a file or a BEIR folder, and the number of items in the folder's corpus.

    Raises:
        EvaluationError: A file is missing or malformed, or the qrels name queries or items that the folder
            does not hold.
    """
    if not path.is_dir():
        return read_qrels(path), None
    if not (path / QRELS).is_file():
        raise EvaluationError(f"{path} holds no {QRELS}", NextStep("give a BEIR folder, or a file of qrels"))
    qrels = read_qrels(path / QRELS)
    corpus = {name for name, _, _ in read_texts(path / "corpus.jsonl")}
    queries = {name for name, _, _ in read_texts(path / "queries.jsonl")}
    for kind, known, used in (
        ("query", queries, qrels.keys()),
        ("item", corpus, {item for right in qrels.values() for item in right}),
    ):
        unknown = sorted(set(used) - known)
        if unknown:
            raise EvaluationError(f"{path / QRELS} judges {kind} {unknown[0]!r}, which the folder lacks")
    return qrels, len(corpus)


def evaluate_run(
    run: Path, qrels: Qrels, items: int | None = None, direction: Direction = Direction.TEXT_TO_VIDEO
) -> EvaluationRun:
    """Return the ranks of a TREC run's right answers, for the same tables as any other evaluation.

    Args:
        run: A TREC run file.
        qrels: Query → item → relevance (`read_judgements`). Queries without qrels do not count.
        items: The size of the gallery; by default the items that the run and the qrels name.
        direction: Whether captions look for videos or videos for captions.

    Returns:
        The run, whose answers that were not retrieved have an infinite rank.

    Raises:
        EvaluationError: A file is malformed, or no query has a right answer.
    """
    retrieved = list(read_run(run))
    named = {item for _, scores in retrieved for item in scores} | {
        i for right in qrels.values() for i in right
    }
    protocol = "" if direction is Direction.TEXT_TO_VIDEO else "ce"
    return EvaluationRun(direction, protocol, UNKNOWN, items or len(named), run_ranks(retrieved, qrels))


def write_texts(path: Path, texts: Mapping[str, str], titles: Mapping[str, str] | None = None) -> None:
    """Write BEIR's queries, or, where there are `titles`, its corpus; a title may be missing."""
    with atomic_text_file(path) as file:
        for name, text in texts.items():
            title = {} if titles is None else {"title": titles.get(name, "")}
            file.write(json.dumps({"_id": name, **title, "text": text}, ensure_ascii=False) + "\n")


def read_texts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield id, title (empty for queries) and text of each line of BEIR's corpus or queries."""
    seen: set[str] = set()
    for number, line in read_lines(path):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise line_fault(path, number, "this is not JSON") from None
        if not isinstance(entry, dict):
            raise line_fault(path, number, "each line is an object with _id and text")
        name, title, text = entry.get("_id"), entry.get("title") or "", entry.get("text")
        if not isinstance(name, str) or not name or not isinstance(text, str) or not isinstance(title, str):
            raise line_fault(path, number, "_id, title and text must be strings, and _id not empty")
        if name in seen:
            raise line_fault(path, number, f"the id {name!r} comes twice")
        seen.add(name)
        yield name, title, text
