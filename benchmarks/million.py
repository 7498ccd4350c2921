"""One machine, up to a million clips: what it costs to open a library, search it, and change it.

    python benchmarks/million.py --library LIBRARY [--sizes 10000,100000,1000000] [--folder build]
        [--queries 200] [--out results/million]

Libraries are synthetic (`synthetic_library`), made from the real LIBRARY, which is only read. A search ranks
with a query bank, with reasons and confidences, and includes encoding its words. Each step is a process of
its own, the searching one with one thread of BLAS as in `wordreel serve`; memory is what that one allocates
beyond the page cache. Writes FILE.json and FILE.svg; the slope of a line is the exponent of its growth with
the number of clips.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_library import CLIPS, add_videos, originals_of, read_originals

from wordreel.api import Library
from wordreel.banks import everyday
from wordreel.banks.choose_scoring import choose_scoring
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.search_index import build_index
from wordreel.hubness import make_method
from wordreel.index.exact import ExactIndex
from wordreel.library.banks import create_bank, list_banks, read_bank
from wordreel.nets.runtime import cores
from wordreel.plots.charts import Series, line_chart
from wordreel.search.query import Query
from wordreel.search.sample import draw_sample
from wordreel.search.scoring import RivalScores
from wordreel.search.searcher import Searcher
from wordreel.search.text_search import TextSearch

NORM = "dis"
FOLDED = ("is", "csls", "nnn", "cent", "dis")
CLIENTS = 16
RECALL_QUERIES = 64
COMPARED = 16  # queries whose confidences are also worked out from all videos
K = 10
BARS = {"open_ms": 100, "search_p50_ms": 50, "memory_mb": 1024}


def fill(folder: Path, source: Path, clips: int) -> dict[str, Any]:
    """Make a library of `clips` clips with a query bank and an index, as far as it is not there."""
    with Library(folder) as library:
        model, store = library.model, library.store
        have = store.stats().files
        report = {"fill_s": 0.0}
        if have < clips // CLIPS:
            with Library(source, create=False) as real:
                originals = read_originals(real.store, store, model)
            report["fill_s"] = _timed(
                lambda: add_videos(store, model, originals, have, clips // CLIPS - have)
            )[1]
        if not list_banks(store):
            create_bank(store, "everyday", everyday.queries()[1::3], "benchmark")
        report["build_index_s"] = _timed(lambda: build_index(store, model))[1]
        report["fit_bank_s"] = _timed(lambda: _search_once(Searcher.open(store, model, choose_scoring)))[1]
        return report


def search(folder: Path, queries: int) -> dict[str, Any]:
    """Open the library and search it."""
    library = Library(folder)
    library.model.encode(["warm"])
    memory = _PeakMemory()
    opened, seconds = _timed(lambda: Searcher.open(library.store, library.model, choose_scoring))
    report: dict[str, Any] = {"clips": len(opened), "open_ms": 1e3 * seconds}
    report["first_search_ms"] = 1e3 * _timed(lambda: _search_once(opened))[1]
    held_out = everyday.queries()[::3]
    asked = [held_out[number % len(held_out)] for number in range(queries)]
    before = time.process_time()
    times = [_timed(lambda text=text: opened.search(Query(text, norm=NORM)))[1] for text in asked]
    busy = time.process_time() - before
    plain = [_timed(lambda text=text: opened.search(Query(text, norm="none")))[1] for text in asked]
    report |= {
        "search_p50_ms": 1e3 * float(np.median(times)),
        "search_p95_ms": 1e3 * float(np.quantile(times, 0.95)),
        "search_cpu_ms": 1e3 * busy / len(asked),  # of all cores: what other programs take is not in it
        "plain_p50_ms": 1e3 * float(np.median(plain)),
        "answers_per_second_16_clients": len(asked) / _clients(opened, asked),
    }
    report["memory_mb"], report["memory_before_open_mb"] = memory.stop(), memory.before
    report["index"] = str(opened.snapshot.opened_index)
    report["videos"] = opened.snapshot.video_count()
    report["recall_at_10"] = _recall(opened, held_out[:RECALL_QUERIES])
    report["confidence"] = _confidence_differences(opened, held_out[:COMPARED])
    report["disk_mb"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    return report


def change(folder: Path, clips: int) -> dict[str, Any]:
    """Add ten videos of ten clips and delete them again."""
    report = {}
    with Library(folder) as library:
        store, model = library.store, library.model
        originals = originals_of(store, model)
        paths, report["add_100_s"] = _timed(lambda: add_videos(store, model, originals, clips // CLIPS, 10))
        for what, expected in (("add", clips + 100), ("delete", clips)):
            opened, seconds = _timed(lambda: Searcher.open(store, model, choose_scoring))
            report[f"open_after_{what}_ms"] = 1e3 * seconds
            report[f"search_after_{what}_s"] = _timed(lambda: _search_once(opened))[1]  # noqa: B023
            assert len(opened) == expected
            if what == "add":
                report["delete_100_s"] = _timed(lambda: store.remove(paths))[1]
    return report


def _clients(searcher: Searcher, texts: list[str]) -> float:
    """Seconds for all texts, asked by `CLIENTS` that wait for each answer; as many threads answer as in the
    server's pool."""
    with ThreadPoolExecutor(CLIENTS) as clients, ThreadPoolExecutor(max(2, cores())) as pool:

        def ask(text: str) -> None:
            pool.submit(searcher.search, Query(text, norm=NORM)).result()

        return _timed(lambda: list(clients.map(ask, texts)))[1]


def _search_once(searcher: Searcher) -> None:
    assert len(searcher.search(Query("a man plays the guitar", norm=NORM))) == K


def _recall(searcher: Searcher, texts: list[str]) -> dict[str, float]:
    """The share of the true ten best items that the index returns, plain and under every foldable norm."""
    gallery, snapshot = searcher.snapshot.gallery, searcher.snapshot
    index, exact = snapshot.index, ExactIndex(gallery.vectors, gallery.available)
    embedded = EmbeddedBank.open(searcher, read_bank(searcher.store, "everyday"))
    encoded = searcher.model.encode(texts)
    vectors, weights = (np.stack([getattr(q, part) for q in encoded]) for part in ("vectors", "weights"))
    recalls = {}
    for name in ("none", *FOLDED):
        correction = None if name == "none" else embedded.norm(make_method(name)).correction
        true = exact.search(vectors, weights, K, snapshot.live, correction).rows
        found = index.search(vectors, weights, K, snapshot.live, correction).rows
        hits = [len(set(a.tolist()) & set(b.tolist())) for a, b in zip(true, found, strict=True)]
        recalls[name] = float(np.mean(hits)) / K
    return recalls


def _confidence_differences(searcher: Searcher, texts: list[str]) -> dict[str, float]:
    """How far the confidences of hits are from those that a look at all videos would give."""
    everything = draw_sample(searcher.snapshot, len(searcher))
    scoring, differences = searcher.scoring(NORM), []
    assert scoring.confidence is not None
    searches = [TextSearch(searcher, text, scoring) for text in searcher.encode_texts(texts)]
    vectors, weights = (
        np.concatenate([getattr(s, part) for s in searches]) for part in ("vectors", "weights")
    )
    for search, plain in zip(searches, everything.scores(vectors, weights), strict=True):
        text = search.text
        query = Query(text.embedding.text or "any", norm=NORM)
        ranked, _ = search.rank(searcher.snapshot.passing(query.filters), query)
        rows = np.array([scored.row for scored in ranked], np.int64)
        every = plain + text.lexical.of(everything.rows)
        best = everything.best(every)
        known = search.rivals
        rivals = RivalScores(every[best].astype(np.float32), everything.rows[best], known.videos, known.best)
        whole = scoring.confidence(search.plain(rows), rows, rivals)
        differences.append(np.abs(whole - search.confidences(rows)))
    return {"largest_difference": float(np.max(differences)), "mean_difference": float(np.mean(differences))}


class _PeakMemory:
    """The most memory that this process held beyond mapped files, sampled every few milliseconds."""

    def __init__(self) -> None:
        self.before = self._most = _anonymous_mb()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            self._most = max(self._most, _anonymous_mb())

    def stop(self) -> float:
        self._stop.set()
        self._thread.join()
        return self._most


def _anonymous_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def _timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    value = work()
    return value, time.perf_counter() - start


def _slope(sizes: list[int], values: list[float]) -> float | None:
    if len(sizes) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=Path, required=True, help="a real library to make copies of")
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--folder", type=Path, default=Path("build"), help="where the synthetic ones go")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("results/million"))
    parser.add_argument("--keep", action="store_true", help="do not delete the synthetic libraries")
    parser.add_argument("--step", choices=("fill", "search", "change"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.step:
        folder = given.folder / f"million-{sizes[0]}"
        work = {
            "fill": lambda: fill(folder, given.library, sizes[0]),
            "search": lambda: search(folder, given.queries),
            "change": lambda: change(folder, sizes[0]),
        }
        print(json.dumps(work[given.step]()))
        return
    reports: list[dict[str, Any]] = []
    for size in sizes:
        reports.append({})
        for step in ("fill", "search", "change"):
            command = [sys.executable, __file__, "--library", str(given.library), "--sizes", str(size)]
            command += ["--folder", str(given.folder), "--queries", str(given.queries), "--step", step]
            environment = {**os.environ, **({"OPENBLAS_NUM_THREADS": "1"} if step == "search" else {})}
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
            reports[-1] |= json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(reports[-1], indent=2), flush=True)
        if not given.keep:
            shutil.rmtree(given.folder / f"million-{size}")
    lines = ("open_ms", "search_p50_ms", "search_p95_ms", "memory_mb", "add_100_s", "delete_100_s")
    slopes = {name: _slope(sizes, [report[name] for report in reports]) for name in lines}
    result = {"bars_at_1000000": BARS, "sizes": reports, "slopes": slopes}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")
    names = {
        name: f"{name} (slope {slopes[name]:.2f})" if slopes[name] is not None else name for name in lines
    }
    series = [Series(names[name], sizes, [report[name] for report in reports]) for name in lines]
    chart = line_chart(
        series, "A library of up to a million clips", "clips", log_x=True, log_y=True, zero=False
    )
    given.out.with_suffix(".svg").write_text(chart)


if __name__ == "__main__":
    main()
