"""Words, filters and paging of searches, over a library of three synthetic films."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.example_library import ColourModel, build
from tests.fuzz.engine import Broken, Session, Target
from tests.fuzz.mutations import WORDS, mutate_text
from tests.lines import lines_with

from wordreel import Library
from wordreel.search.query import Query

FTS = (
    b"NEAR(",
    b'"',
    b"*",
    b"^",
    b" AND ",
    b" OR ",
    b" NOT ",
    b"words_fts:",
    b"{a b}:",
    b"--",
    b"; DROP TABLE words",
)
FIELDS: dict[str, Callable[[str], Any]] = {
    "text": str, "then": str, "norm": str, "bank": str, "beta": float, "limit": int, "offset": int,
    "min_confidence": float, "moments": bool, "compare": bool, "folder": str, "kind": str, "expert": str,
    "min_duration": float, "max_duration": float, "has_speech": bool, "after": datetime.fromisoformat,
    "before": datetime.fromisoformat,
}  # fmt: skip
SEEDS = (
    "text=red dogs\nlimit=5\noffset=1",
    'text="dogs number" OR x\nkind=video\nmoments=1',
    "text=blue\nthen=green\nmin_duration=10\nmax_duration=100",
    "text=green\nnorm=none\nfolder=~/films\nexpert=talk\nhas_speech=",
    "text=red\nafter=2020-01-01\nbefore=2999-01-01T00:00:00\nbank=\ncompare=",
)


def query_session(folder: Path) -> Session:
    build(folder / "films", folder / "library")
    library = Library(folder / "library", model=ColourModel())

    def run(data: bytes) -> None:
        given: dict[str, Any] = {}
        for line in data.decode("utf-8", "surrogateescape").split("\n"):
            name, _, value = line.partition("=")
            if name in FIELDS and not (name == "bank" and not value):
                try:
                    given[name] = FIELDS[name](value)
                except (ValueError, OverflowError):  # the command line and the server refuse these
                    return
        text = given.pop("text", None)
        hits = library.search(Query.build(text, **given))
        scores = [hit.score for hit in hits]
        if not all(map(math.isfinite, scores)) or len(hits) > given.get("limit", 10):
            raise Broken(f"{len(hits)} hits with scores {scores[:3]}")
        if isinstance(text, str) and "then" not in given:
            library.where(folder / "films" / "sea.mp4", text)
        lines_with(library.store, [text or "", *(text or "").split()])

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        return mutate_text(rng, data, corpus, (*WORDS, *FTS, *(f"\n{name}=".encode() for name in FIELDS)))

    return Session([seed.encode() for seed in SEEDS], run, mutate, library.close)


TARGETS = (Target("queries", "words (full-text syntax), filters, paging", query_session, few=12),)
