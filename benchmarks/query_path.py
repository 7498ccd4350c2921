"""Where the milliseconds of one search go.

    python benchmarks/query_path.py LIBRARY [--queries 60] [--rounds 3] [--before SRC] [--out FILE.json]

Asks the library new queries as `wordreel serve` does, in warm processes, with reasons and confidences under a
query bank (`dis`) and plain, and prints the median milliseconds of each stage, each without the stages inside
it. `--before` names the `src` folder of another version: the two take turns, round by round, and the table
has the ratio. BLAS has one thread, as in `wordreel serve`. CPU is of all threads: what other programs take is
not in it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROUND_WARMUP = 200  # most items of a small library are explained in them, as in a server that has run a while
LIMIT = 24  # hits, as the page asks for
MODES = {"dis": "bank, confidence", "none": "plain"}
REST, WHOLE, CPU = "everything else", "whole search", "CPU of it"


class Stages:
    """Exclusive time by stage, of the thread that asks."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._inner = [0.0]  # time of the stages inside each open one
        self._thread = threading.get_ident()

    def wrap(self, owner: Any, name: str, stage: str) -> None:
        """Time a function or method under the name of a stage; another version may not have it."""
        if name not in vars(owner):
            return
        work: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            if threading.get_ident() != self._thread:
                return work(*args, **options)
            self._inner.append(0.0)
            start = time.perf_counter()
            try:
                return work(*args, **options)
            finally:
                whole = time.perf_counter() - start
                self.spent[stage] += whole - self._inner.pop()
                self._inner[-1] += whole

        setattr(owner, name, timed)


def measure(folder: Path, first: int, queries: int) -> dict[str, dict[str, float]]:
    """Milliseconds by stage, for each mode."""
    import numpy as np

    from wordreel.api import Library
    from wordreel.banks import everyday
    from wordreel.banks.choose_scoring import choose_scoring
    from wordreel.library.banks import create_bank, list_banks
    from wordreel.nets.sentences import SentenceEncoder
    from wordreel.search import explain, searcher, text_search
    from wordreel.search.filters import PassingVideos
    from wordreel.search.query import Query
    from wordreel.search.sample import VideoSample
    from wordreel.serve.encoder import CachedQueryModel
    from wordreel.serve.track_cache import TrackCache

    library = Library(folder, create=False)
    if not list_banks(library.store):
        create_bank(library.store, "everyday", everyday.queries()[1::3], "benchmark")
    library.store.load_track = TrackCache(library.store.load_track)
    opened = searcher.Searcher.open(library.store, CachedQueryModel(library.model), choose_scoring)
    pool = everyday.queries()
    report = {}
    stages = Stages()
    for owner, name, stage in (
        (SentenceEncoder, "encode", "sentence encoders"),
        (SentenceEncoder, "encode_fast", "sentence encoders"),
        (type(library.model), "encode", "query embedding"),
        (type(library.model), "encode_fast", "query embedding"),
        (searcher, "lexical_matches", "words said and shown"),
        (text_search.TextSearch, "rank", "ranking"),
        (type(opened.snapshot.index), "search", "index"),  # where it has one of its own
        (type(opened.snapshot.index), "best", "index"),
        (VideoSample, "scores", "confidence: sample"),
        (text_search.TextSearch, "confidences", "confidence"),
        (PassingVideos, "paths", "records of hits"),
        (type(library.store), "infos_and_analyses", "records of hits"),
        (text_search.TextSearch, "moments", "records of hits"),
        (text_search.TextSearch, "moment", "records of hits"),  # of versions that find them one by one
        (text_search, "hit_of", "records of hits"),
        (explain, "tracks_of_all", "reasons: tracks"),
        (explain, "tracks_of", "reasons: tracks"),
        (type(library.model), "evidence", "reasons: labels"),
        (type(library.model), "explain_all", "reasons: labels"),
        (text_search, "explain_items", "reasons"),
    ):
        stages.wrap(owner, name, stage)
    for number, norm in enumerate(MODES):
        rng = random.Random(first + number * (queries + ROUND_WARMUP))
        asked = [f"{rng.choice(pool)} {rng.choice(pool)}" for _ in range(queries + ROUND_WARMUP)]
        for text in asked[:ROUND_WARMUP]:
            opened.search(Query(text, norm=norm, limit=LIMIT))
        rows, busy = [], time.process_time()
        for text in asked[ROUND_WARMUP:]:
            stages.spent.clear()
            begun = time.perf_counter()
            hits = opened.search(Query(text, norm=norm, limit=LIMIT)).hits
            answered = time.perf_counter()
            json.dumps([dataclasses.asdict(hit) for hit in hits])
            ended = time.perf_counter()
            row = {**stages.spent, "JSON": ended - answered, WHOLE: ended - begun}
            row[REST] = row[WHOLE] - sum(seconds for stage, seconds in row.items() if stage != WHOLE)
            rows.append(row)
        busy = time.process_time() - busy
        named = sorted({stage for row in rows for stage in row})
        report[norm] = {
            stage: 1e3 * float(np.median([row.get(stage, 0.0) for row in rows])) for stage in named
        }
        report[norm][CPU] = 1e3 * busy / queries
    return report


def run(source: Path, folder: Path, first: int, queries: int) -> dict[str, dict[str, float]]:
    """`measure` in a process of its own, with the package of a `src` folder."""
    command = [sys.executable, __file__, str(folder), "--queries", str(queries), "--step", str(first)]
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    report: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return report


def table(reports: dict[str, list[dict[str, dict[str, float]]]]) -> dict[str, dict[str, dict[str, float]]]:
    """The median over the rounds: mode → stage → version → milliseconds."""
    import numpy as np

    result: dict[str, dict[str, dict[str, float]]] = {}
    for norm in MODES:
        stages = {stage for rounds in reports.values() for one in rounds for stage in one[norm]}
        last = [REST, WHOLE, CPU]
        result[norm] = {
            stage: {
                version: float(np.median([one[norm].get(stage, 0.0) for one in rounds]))
                for version, rounds in reports.items()
            }
            for stage in [*sorted(stages - set(last)), *last]
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="it gets a query bank if it has none")
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="the src folder of the version to compare with")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--step", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step is not None:
        print(json.dumps(measure(given.library, given.step, given.queries)))
        return
    here = Path(__file__).resolve().parents[1] / "src"
    versions = {**({"before": given.before} if given.before else {}), "now": here}
    reports: dict[str, list[dict[str, dict[str, float]]]] = {version: [] for version in versions}
    for number in range(given.rounds):
        for version, source in versions.items():
            first = number * len(MODES) * (given.queries + ROUND_WARMUP)
            reports[version].append(run(source, given.library, first, given.queries))
    result = table(reports)
    for norm, stages in result.items():
        print(f"\n{MODES[norm]:24}" + "".join(f"{version:>10}" for version in versions) + "   ms")
        for stage, values in stages.items():
            line = f"{stage:24}" + "".join(f"{values[version]:10.2f}" for version in versions)
            if given.before and values["before"] > 0:
                line += f"{values['now'] / values['before']:10.2f} ×"
            print(line)
    print(json.dumps(result))
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
