"""Judgements: which items are right for which queries, in TREC's four columns or BEIR's three.

TREC: `query 0 item relevance`, set apart by white space. BEIR: `query-id  corpus-id  score`, set apart by
tabs, under that heading. A relevance of more than 0 is a right answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.evaluate.lines import check_id, fault, fresh_file, lines_of
from wordreel.evaluate.retrieval import Captions

Qrels = dict[str, dict[str, int]]  # query → item → relevance

HEADING = ("query-id", "corpus-id", "score")


def write_qrels(
    path: Path, qrels: Mapping[str, Mapping[str, int]], style: Literal["trec", "beir"] = "trec"
) -> None:
    """Write judgements in one of the two styles."""
    line = "{} 0 {} {}\n" if style == "trec" else "{}\t{}\t{}\n"
    with fresh_file(path) as file:
        if style == "beir":
            file.write("\t".join(HEADING) + "\n")
        for query, right in qrels.items():
            check_id(query, "the query id")
            file.writelines(
                line.format(query, check_id(item, "the item id"), value) for item, value in right.items()
            )


def read_qrels(path: Path) -> Qrels:
    """Judgements of either style, told apart by the heading."""
    qrels: Qrels = {}
    headed = False
    for number, line in lines_of(path):
        if not headed and not qrels and line.split() == list(HEADING):
            headed = True
            continue
        if headed:
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) != 3 or not all(columns):
                raise fault(path, number, f"under this heading are 3 columns set by tabs, not {len(columns)}")
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

    >>> from wordreel.evaluate.retrieval import arrange
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
