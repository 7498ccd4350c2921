"""Where the milliseconds of one search go.

    python benchmarks/query_path.py LIBRARY [--queries 60] [--rounds 3] [--before SRC] [--encoded] [--out F]

Asks the application of `wordreel serve` new queries for a page of hits with reasons, one after the other, in
a warm process: under a query bank (`dis`) with confidences, and plain. Prints the median milliseconds of each
stage, each without the stages inside it; what is in no stage is `HTTP and threads`: the guard, routing,
reading the request, and handing it to threads and back. Sockets are left out (see `benchmarks/serve.py`).

`--before` names the `src` folder of another version: the two take turns, round by round, and the table has
the ratio. `--encoded` encodes each text before it is asked, to see the rest of a search by itself. BLAS has
one thread, as in `wordreel serve`. CPU is of all threads: what other programs take is not in it. `--out`
writes the file F as JSON and the same table beside it for people (`.md`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

ROUND_WARMUP = 200  # most items of a small library are explained in them, as in a server that has run a while
LIMIT = 24  # hits, as the page asks for
MODES = {"dis": "bank, confidences", "none": "plain"}
BESIDE = "wordreel-encode"  # threads that encode beside the one that waits for them: their time is in it
REST, WHOLE, CPU = "HTTP and threads", "whole search", "CPU of it"
ORDER = (
    "sentence encoders",
    "query embedding",
    "words said and shown",
    "index",
    "ranking",
    "confidences",
    "records and moments of hits",
    "reasons",
    "hits as JSON",
    "other steps of a search",
    REST,
    WHOLE,
    CPU,
)

Report = dict[str, dict[str, float]]  # mode → stage → milliseconds


class Stages:
    """Exclusive time by stage, over all threads."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._own = threading.local()  # `inner`: time of the stages inside each open one of this thread

    def wrap(self, owner: Any, name: str, stage: str) -> None:
        """Time a function or method under the name of a stage; another version may not have it."""
        if name not in vars(owner):
            return
        work: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            if threading.current_thread().name.startswith(BESIDE):
                return work(*args, **options)
            inner = self._own.__dict__.setdefault("inner", [0.0])
            inner.append(0.0)
            start = time.perf_counter()
            try:
                return work(*args, **options)
            finally:
                whole = time.perf_counter() - start
                self.spent[stage] += whole - inner.pop()
                inner[-1] += whole

        setattr(owner, name, timed)


def wrap_stages(stages: Stages, model: Any, index: Any) -> None:
    """Time the functions that a search goes through."""
    from wordreel.library.store import LibraryStore
    from wordreel.nets.sentences import SentenceEncoder
    from wordreel.search import explain, searcher, text_search
    from wordreel.search.filters import PassingVideos
    from wordreel.search.sample import VideoSample
    from wordreel.serve import search_answer, search_handlers

    with suppress(ImportError):  # versions of before have none
        from wordreel.models.reel.query_encoder import QueryEncoder

        stages.wrap(QueryEncoder, "encode", "sentence encoders")
    for owner, names, stage in (
        (SentenceEncoder, ("encode", "encode_fast"), "sentence encoders"),
        (type(model), ("encode", "encode_fast"), "query embedding"),
        (searcher, ("lexical_matches",), "words said and shown"),
        (type(index), ("scores", "search", "best"), "index"),
        (text_search, ("search_scores",), "index"),
        (text_search.TextSearch, ("rank",), "ranking"),
        (text_search.TextSearch, ("confidences",), "confidences"),
        (VideoSample, ("scores",), "confidences"),
        (PassingVideos, ("paths", "records"), "records and moments of hits"),
        (LibraryStore, ("infos_and_analyses",), "records and moments of hits"),
        (text_search.TextSearch, ("moments",), "records and moments of hits"),
        (text_search, ("hit_of", "page_hits"), "records and moments of hits"),
        (text_search, ("explain_items",), "reasons"),
        (explain, ("tracks_of_all",), "reasons"),
        (type(model), ("evidence", "explain_all"), "reasons"),
        (search_answer, ("hit_objects", "json_bytes"), "hits as JSON"),
        (search_answer, ("answer_search",), "other steps of a search"),
        (search_handlers, ("answer_search", "encode_and_answer"), "other steps of a search"),
    ):
        for name in names:
            stages.wrap(owner, name, stage)


async def ask(app: Any, text: str, norm: str) -> bytes:
    """The body of the answer to one request."""
    query = urlencode({"text": text, "norm": norm, "limit": LIMIT}).encode()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/search",
        "raw_path": b"/api/search",
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8010),
        "scheme": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    body, begun, ended = bytearray(), False, asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal begun
        if begun:
            await ended.wait()
            return {"type": "http.disconnect"}
        begun = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] != 200:
            raise SystemExit(f"the server answered {message}")
        body.extend(message.get("body", b""))

    await app(scope, receive, send)
    ended.set()
    return bytes(body)


async def measure(folder: Path, first: int, queries: int, encoded: bool) -> Report:
    """Milliseconds by stage, for each mode."""
    import numpy as np

    from wordreel.api import Library
    from wordreel.banks import everyday
    from wordreel.library.banks import create_bank, list_banks
    from wordreel.serve.app import build_app
    from wordreel.serve.options import Options
    from wordreel.serve.service import Service

    library = Library(folder, create=False)
    if not list_banks(library.store):
        create_bank(library.store, "everyday", everyday.queries()[1::3], "benchmark")
    service = Service(library, Options(search_rate=0.0))
    app = build_app(service)
    stages = Stages()
    wrap_stages(stages, library.model, service.live.now.searcher.snapshot.index)
    pool = everyday.queries()
    report: Report = {}
    for number, norm in enumerate(MODES):
        rng = random.Random(first + number * (queries + ROUND_WARMUP))
        asked = [f"{rng.choice(pool)} {rng.choice(pool)}" for _ in range(queries + ROUND_WARMUP)]
        for text in asked[:ROUND_WARMUP]:
            await ask(app, text, norm)
        rows, busy = [], 0.0
        for text in asked[ROUND_WARMUP:]:
            if encoded:
                service.encoder.model.encode([text])
            stages.spent.clear()
            begun, cpu = time.perf_counter(), time.process_time()
            await ask(app, text, norm)
            row = {WHOLE: time.perf_counter() - begun, **stages.spent}
            busy += time.process_time() - cpu
            row[REST] = row[WHOLE] - sum(stages.spent.values())
            rows.append(row)
        named = [stage for stage in ORDER if any(stage in row for row in rows)]
        report[norm] = {
            stage: 1e3 * float(np.median([row.get(stage, 0.0) for row in rows])) for stage in named
        }
        report[norm][CPU] = 1e3 * busy / queries
    await service.stop()
    return report


def run(source: Path, given: argparse.Namespace, first: int) -> Report:
    """`measure` in a process of its own, with the package of a `src` folder."""
    command = [sys.executable, __file__, str(given.library), "--queries", str(given.queries)]
    command += ["--step", str(first), *(["--encoded"] if given.encoded else [])]
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    report: Report = json.loads(done.stdout.splitlines()[-1])
    return report


def medians(reports: dict[str, list[Report]]) -> dict[str, dict[str, dict[str, float]]]:
    """Over the rounds: mode → stage → version → milliseconds."""
    import numpy as np

    return {
        norm: {
            stage: {
                version: round(float(np.median([one[norm].get(stage, 0.0) for one in rounds])), 3)
                for version, rounds in reports.items()
            }
            for stage in ORDER
            if any(stage in one[norm] for rounds in reports.values() for one in rounds)
        }
        for norm in MODES
    }


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [
        "# Where the milliseconds of a search go\n",
        f"Made by `benchmarks/query_path.py`: medians of {report['rounds']} rounds of {report['queries']} "
        f"new queries with {LIMIT} hits on {report['cores']} cores, load {report['load']} at the start"
        + (", texts encoded before." if report["encoded"] else "."),
    ]
    for norm, stages in report["modes"].items():
        versions = list(next(iter(stages.values())))
        compared = "before" in versions
        lines.append(f"\n| {MODES[norm]}: ms | {' | '.join(versions)} |" + (" ratio |" if compared else ""))
        lines.append("|---|" + "--:|" * (len(versions) + compared))
        for stage, values in stages.items():
            line = f"| {stage} | " + " | ".join(f"{values[version]:.2f}" for version in versions) + " |"
            if compared:
                line += f" {values['now'] / values['before']:.2f} |" if values["before"] else " |"
            lines.append(line)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="it gets a query bank if it has none")
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="the src folder of the version to compare with")
    parser.add_argument("--encoded", action="store_true", help="leave encoding out")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--step", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step is not None:
        from uvicorn import Config

        with asyncio.Runner(loop_factory=Config("").get_loop_factory()) as runner:  # as the server runs
            report = runner.run(measure(given.library, given.step, given.queries, given.encoded))
        print(json.dumps(report))
        return
    here = Path(__file__).resolve().parents[1] / "src"
    versions = {**({"before": given.before} if given.before else {}), "now": here}
    reports: dict[str, list[Report]] = {version: [] for version in versions}
    load = round(os.getloadavg()[0], 1)
    for number in range(given.rounds):
        for version, source in versions.items():
            first = number * len(MODES) * (given.queries + ROUND_WARMUP)
            reports[version].append(run(source, given, first))
    result = {
        "rounds": given.rounds,
        "queries": given.queries,
        "encoded": given.encoded,
        "cores": len(os.sched_getaffinity(0)),
        "load": load,
        "modes": medians(reports),
    }
    print(table(result))
    if given.out:
        given.out.write_text(json.dumps(result, indent=2) + "\n")
        given.out.with_suffix(".md").write_text(table(result))


if __name__ == "__main__":
    main()
