"""Exchange with other evaluation tools: export a ranking as TREC or BEIR files, measure a foreign run.

A captioned set becomes queries `VIDEO#0`, `VIDEO#1`, … (the captions) and items (the videos); for video to
text the other way round. A BEIR folder, which MTEB reads too, has `corpus.jsonl`, `queries.jsonl` and
`qrels/test.tsv`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
class CaptionedIds:
    """The ids of a captioned set: one per caption, one per video."""

    captions: tuple[str, ...]
    videos: tuple[str, ...]


def captioned_ids(captions: Captions, videos: Sequence[str] = ()) -> CaptionedIds:
    """Ids for the captions and videos of a set; `videos` are their names, numbers where there are none.

    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> captioned_ids(arrange(2, 4), ["dog", "cat"]).captions
    ('dog#0', 'dog#1', 'cat#0', 'cat#1')
    """
    names = tuple("_".join(name.split()) for name in videos) or tuple(f"v{n}" for n in range(captions.videos))
    seen: Counter[int] = Counter()
    ids = []
    for owner in captions.owner.tolist():
        ids.append(f"{names[owner]}#{seen[owner]}")
        seen[owner] += 1
    return CaptionedIds(tuple(ids), names)


def export_run(
    path: Path,
    scores: Array,
    captions: Captions,
    ids: CaptionedIds,
    direction: Direction = Direction.TEXT_TO_VIDEO,
    *,
    k: int = 1000,
) -> None:
    """Write the `k` best items of each query as a TREC run.

    Args:
        path: The file to write.
        scores: `[captions, videos]`, larger is better.
        captions: Captions that are not valid are left out.
        ids: See `captioned_ids`.
        direction: Whether captions look for videos or videos for captions.
        k: Items per query.

    Raises:
        EvaluationError: An id is unusable, a score is not finite, or the file cannot be written.
    """
    valid = np.flatnonzero(captions.valid)
    names = [ids.captions[caption] for caption in valid]
    rows = scores if len(valid) == len(captions) else scores[valid]
    if direction is Direction.TEXT_TO_VIDEO:
        write_run(path, rows, names, ids.videos, k=k)
    else:
        write_run(path, rows.T, ids.videos, names, k=k)


def export_qrels(
    path: Path, captions: Captions, ids: CaptionedIds, direction: Direction = Direction.TEXT_TO_VIDEO
) -> None:
    """Write which items answer which query, as TREC qrels.

    Args:
        path: The file to write.
        captions: Captions that are not valid are left out.
        ids: The names to write (`captioned_ids`).
        direction: Whether captions look for videos or videos for captions.

    >>> from tempfile import TemporaryDirectory
    >>> from wordreel.retrieval.caption_ranks import arrange
    >>> with TemporaryDirectory() as folder:
    ...     captions = arrange(2, 2)
    ...     export_qrels(Path(folder) / "qrels.txt", captions, captioned_ids(captions, ["dog", "cat"]))
    ...     (Path(folder) / "qrels.txt").read_text().splitlines()
    ['dog#0 0 dog 1', 'cat#0 0 cat 1']
    """
    backwards = direction is Direction.VIDEO_TO_TEXT
    write_qrels(path, caption_qrels(captions, ids.captions, ids.videos, backwards=backwards))


def export_beir(
    folder: Path,
    captions: Captions,
    ids: CaptionedIds,
    texts: Sequence[str] = (),
    direction: Direction = Direction.TEXT_TO_VIDEO,
) -> None:
    """Write a captioned set as a BEIR folder.

    Args:
        folder: Where to write `corpus.jsonl`, `queries.jsonl` and the qrels.
        captions: Captions that are not valid are left out.
        ids: The names to write (`captioned_ids`).
        texts: The caption texts; without them an id stands for its text.
        direction: Whether captions look for videos or videos for captions.

    Raises:
        EvaluationError: The folder cannot be written.
    """
    words = texts or ids.captions
    lines = {ids.captions[n]: words[n] for n in np.flatnonzero(captions.valid).tolist()}
    videos = dict(zip(ids.videos, ids.videos, strict=True))
    backwards = direction is Direction.VIDEO_TO_TEXT
    try:
        (folder / QRELS).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"{folder} cannot be written: {error.strerror or error}") from None
    queries, corpus = (videos, lines) if backwards else (lines, videos)
    write_texts(folder / "queries.jsonl", queries)
    write_texts(folder / "corpus.jsonl", corpus, titles={})
    qrels = caption_qrels(captions, ids.captions, ids.videos, backwards=backwards)
    write_qrels(folder / QRELS, qrels, style="beir")


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
    named = {item for one in retrieved for item in one.items} | {i for right in qrels.values() for i in right}
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
