"""How well a library answers: captions of its videos as queries, through the very path a search takes."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel import __version__
from wordreel.errors import QueryError
from wordreel.evaluate.captions import file_of
from wordreel.evaluate.ranks import Recall, ranks_of, recall
from wordreel.search.engine import Engine

BATCH = 512  # queries scored at once


@dataclass(frozen=True)
class Evaluation:
    """Text-to-video retrieval over `videos` videos; what made the numbers stands beside them."""

    t2v: Recall
    videos: int
    missing: int  # captioned videos that the library does not have
    model: str
    fingerprint: str
    experts: dict[str, float]  # share of these videos each expert speaks for
    post_processing: str = "none"


def evaluate(
    engine: Engine,
    captions: Mapping[str, Sequence[str]],
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Rank the captioned videos for each of their captions. Other videos of the library do not compete."""
    named: dict[str, str] = {}
    for file in engine.store.files():
        named.setdefault(Path(file.path).name, file.content)
        named.setdefault(Path(file.path).stem, file.content)
    here = {name: texts for name, texts in captions.items() if name in named}
    column = {content: number for number, content in enumerate(engine.contents())}
    gallery = sorted({named[name] for name in here})
    if not gallery:
        raise QueryError(
            "none of the captioned ids is a file name in this library; `wordreel list` shows them"
        )
    chosen = np.array([column[content] for content in gallery])
    place = {content: number for number, content in enumerate(gallery)}
    queries = [(text, place[named[name]]) for name, texts in here.items() for text in texts]
    ranks = []
    for start in range(0, len(queries), BATCH):
        batch = queries[start : start + BATCH]
        scores = engine.scores([text for text, _ in batch])[:, chosen]
        ranks.append(ranks_of(scores, np.array([right for _, right in batch])))
        if progress:
            progress(start + len(batch), len(queries))
    return Evaluation(
        t2v=recall(np.concatenate(ranks)),
        videos=len(gallery),
        missing=len(captions) - len(here),
        model=engine.model.name,
        fingerprint=engine.model.fingerprint,
        experts=engine.coverage(gallery),
    )


def report(found: Evaluation, captions: str, command: str) -> dict[str, Any]:
    """The evaluation with what is needed to make it again."""
    return {
        "command": command,
        "captions_sha256": hashlib.sha256(file_of(captions).read_bytes()).hexdigest(),
        "wordreel": __version__,
        "python": platform.python_version(),
        **asdict(found),
    }


def table(found: Evaluation) -> str:
    """A Markdown table of the evaluation."""
    r = found.t2v
    return (
        "| model | post-processing | videos | captions | R@1 | R@5 | R@10 | MdR | MnR |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
        f"| {found.model} | {found.post_processing} | {found.videos} | {r.queries} | {r.r1:.1f} | {r.r5:.1f} "
        f"| {r.r10:.1f} | {r.median_rank:g} | {r.mean_rank:.1f} |\n"
    )
