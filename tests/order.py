"""Order and sureness agree: what is shown of a hit never contradicts the place it has in its list.

    python -m tests.order LIBRARY [--queries 500] [--minutes 60] [--out FILE.json]

Asks a library many queries and looks at every list that a person or a program gets to see: Python, the
command line (text and JSON) and HTTP; videos, moments, pairs of moments, both sides of a comparison,
look-alikes and the moments of one video; further pages, and lists with a minimum confidence. Confidences and
scores must not rise from one entry to the next, and ranks must count up. The command line runs as a program
of its own for some of the queries; for all of them its lines are made by the functions that it prints with.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from wordreel.library import Library
from wordreel.search.hits import Hit
from wordreel.search.query import Query

LIMIT = 12
AT_ONCE = 10  # queries that are given to all surfaces in turn
RUN_EVERY = 100  # queries of which two are given to the program itself
LINE = re.compile(r"^ *(\d+)\.  +(-?\d+\.\d+)  .*?(?:  +(\d+)% sure)?(?:  \(quick look\))?$")
SUREST = 0.05  # minimum confidence of filtered lists


class Checks:
    """The lists that were looked at, by surface, and what contradicted."""

    def __init__(self) -> None:
        self.lists: Counter[str] = Counter()
        self.contradictions: list[str] = []

    def numbers(self, surface: str, query: str, name: str, values: Sequence[float | None]) -> None:
        """Numbers that must not rise; None where nothing is shown."""
        shown = [value for value in values if value is not None]
        for number, (above, below) in enumerate(pairwise(shown), start=1):
            if below > above:
                what = f"{name} {above!r} above {below!r} at {number}"
                self.contradictions.append(f"{surface}, {query!r}: {what}")

    def hits(self, surface: str, query: str, hits: Sequence[dict[str, Any]], first: int = 1) -> None:
        """A list of hits as JSON values."""
        self.lists[surface] += 1
        self.numbers(surface, query, "confidence", [hit.get("confidence") for hit in hits])
        self.numbers(surface, query, "score", [hit["score"] for hit in hits])
        ranks = [hit["rank"] for hit in hits]
        if ranks != list(range(first, first + len(hits))):
            self.contradictions.append(f"{surface}, {query!r}: ranks {ranks}")

    def lines(self, surface: str, query: str, text: str) -> None:
        """Hits as the command line prints them."""
        self.lists[surface] += 1
        found = [match for line in text.splitlines() if (match := LINE.match(line))]
        self.numbers(surface, query, "percent", [float(m[3]) if m[3] else None for m in found])
        self.numbers(surface, query, "score", [float(m[2]) for m in found])
        self.numbers(surface, query, "rank", [-int(m[1]) for m in found])


def check_python(checks: Checks, library: Library, queries: Sequence[str], confident: bool) -> None:
    """Every list of the Python API, and the lines that the command line makes of it."""
    from wordreel.cli.find.hit_lines import lines

    def look(surface: str, text: str, results: Sequence[Hit], first: int = 1) -> None:
        checks.hits(f"Python: {surface}", text, [_plain(hit) for hit in results], first)
        checks.lines(f"lines: {surface}", text, "\n".join(lines(results)))

    for number, text in enumerate(queries):
        first = library.search(text, limit=LIMIT)
        look("videos", text, first)
        second = library.search(text, limit=LIMIT, offset=LIMIT)
        look("videos, pages one and two", text, [*first, *second])
        look("moments", text, library.search(text, limit=LIMIT, moments=True))
        if confident:
            look("sure ones", text, library.search(text, limit=LIMIT, min_confidence=SUREST))
            compared = library.search(Query(text, limit=LIMIT, compare=True))
            look("compared, plain", text, compared.plain or ())
            look("compared, normalised", text, compared)
        look("pairs", text, library.search(text, then=queries[number - 1], limit=LIMIT))
        if len(first):
            look("look-alikes", text, library.search(like=first[0].path, limit=LIMIT))
            timeline = library.where(first[0].path, text)
            checks.lists["Python: moments of a video"] += 1
            checks.numbers("Python: moments of a video", text, "score", [m[2] for m in timeline.moments])


def _plain(hit: Hit) -> dict[str, Any]:
    return {"rank": hit.rank, "score": hit.score, "confidence": hit.confidence}


def check_program(checks: Checks, library: Path, queries: Sequence[str]) -> None:
    """The command line as a program of its own: text and JSON."""

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "wordreel", *words, "--library", str(library)]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout

    for number, text in enumerate(queries):
        for kind in ([], ["--moments"], ["--then", queries[number - 1]]):
            surface = " ".join(["wordreel search", *kind[:1]])
            checks.lines(f"{surface}, text", text, run("search", text, *kind))
            checks.hits(f"{surface}, JSON", text, json.loads(run("search", text, *kind, "--json")))


def check_http(checks: Checks, port: int, queries: Sequence[str], confident: bool) -> None:
    """The HTTP API, which is what the page shows."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(path: str, **parameters: Any) -> Any:
        connection.request("GET", f"{path}?{urlencode(parameters)}")
        answer = connection.getresponse()
        body = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {body}")
        return body

    for number, text in enumerate(queries):
        found = ask("/api/search", text=text, limit=LIMIT)["hits"]
        checks.hits("HTTP: videos", text, found)
        checks.hits("HTTP: moments", text, ask("/api/search", text=text, moments="true", limit=LIMIT)["hits"])
        pairs = ask("/api/search", text=text, then=queries[number - 1], limit=LIMIT)["hits"]
        checks.hits("HTTP: pairs", text, pairs)
        if found:
            video = f"/api/videos/{found[0]['content']}"
            checks.hits(
                "HTTP: look-alikes", text, ask("/api/search", like=found[0]["content"], limit=LIMIT)["hits"]
            )
            checks.lists["HTTP: moments of a video"] += 1
            moments = ask(f"{video}/match", text=text)["moments"]
            checks.numbers("HTTP: moments of a video", text, "score", [one["score"] for one in moments])
        if confident:
            both = ask("/api/search", text=text, limit=LIMIT, compare="true")
            for side in ("plain", "hits"):
                checks.hits(f"HTTP: compared, {side}", text, both[side])


@contextmanager
def served(library: Library) -> Iterator[int]:
    """The port of a server over an opened library."""
    from wordreel.serve.app import build_server
    from wordreel.serve.options import Options
    from wordreel.serve.service import Service

    server = build_server(Service(library, Options(port=0)))
    sock = server.config.bind_socket()
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the server did not start")
        time.sleep(0.01)
    try:
        yield sock.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def leave_out_reasons() -> None:
    """Searches of this process explain no hit: reasons take most of the time, and change no number."""
    from wordreel.search import like, text_search, then

    def no_reasons(searcher: Any, rows: Sequence[int], text: Any) -> list[tuple[()]]:
        return [()] * len(rows)

    vars(text_search)["explain_items"] = vars(then)["explain_items"] = no_reasons
    vars(like)["_reasons"] = lambda *_: ()


def main() -> None:
    from wordreel.banks.sources import everyday_queries

    parser = argparse.ArgumentParser()
    parser.add_argument("library", type=Path)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which nothing more is asked")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = everyday_queries()
    texts = [known[number * len(known) // options.queries] for number in range(options.queries)]
    leave_out_reasons()
    checks, asked, deadline = Checks(), 0, time.monotonic() + 60 * options.minutes
    with (
        Library(options.library, create=False) as library,
        Library(options.library, create=False) as other,
        served(other) as port,
    ):
        confident = library.search(texts[0], limit=1)[0].confidence is not None
        while asked < len(texts) and time.monotonic() < deadline:
            some = texts[asked : asked + AT_ONCE]
            check_python(checks, library, some, confident)
            check_http(checks, port, some, confident)
            if asked % RUN_EVERY == 0:
                check_program(checks, options.library, some[:2])
            asked += len(some)
        videos = len(library.videos())
    report = {
        "library": options.library.name,
        "videos": videos,
        "confidences": confident,
        "queries": asked,
        "lists": dict(sorted(checks.lists.items())),
        "contradictions": checks.contradictions,
    }
    text = json.dumps(report, indent=2, ensure_ascii=False)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")
    sys.exit(1 if checks.contradictions else 0)


if __name__ == "__main__":
    main()
