"""One machine, up to a million clips: what it costs to open a library, search it, and change it.

    python benchmarks/million.py --library LIBRARY [--sizes 10000,100000,1000000] [--folder build]
        [--steps fill,search,recall,change] [--queries 200] [--out results/index/library]

Libraries are synthetic (`synthetic_library`), made from the real LIBRARY, whose clips are embedded first if
they are not. A search ranks with a query bank, with reasons and confidences, and includes encoding its words.
Each step is a process of its own, the searching one with one thread of BLAS as in `wordreel serve`; memory is
what that one allocates beyond the page cache. Writes FILE.json and FILE.svg; the slope of a line is the
exponent of its growth with the number of clips.

Filling takes minutes, and so does recall, which compares with exact search; neither needs an idle machine:
`--steps fill` first, then `--steps search,change`, then `--steps recall`.
What is filled already is not filled again, and `--steps` leaves the libraries where they are.
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

from wordreel.banks.choose_scoring import choose_scoring, method_for
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.fitted_states import fit_all
from wordreel.banks.search_index import build_index
from wordreel.banks.sources import everyday_queries
from wordreel.catalogue.banks import create_bank, list_banks, read_bank
from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex
from wordreel.lab.plots import Series, line_chart
from wordreel.library import Library
from wordreel.search.query import Query
from wordreel.search.query_fields import SearchNorm
from wordreel.search.sample import draw_sample
from wordreel.search.scoring import RivalScores
from wordreel.search.searcher import Searcher
from wordreel.search.text_search import TextSearch
from wordreel.util.machine import cores

NORM: SearchNorm = "dis"
NORMS: tuple[SearchNorm, ...] = (NORM, "none")
FOLDED = ("is", "csls", "nnn", "cent", "dis")
CLIENTS = 16
RECALL_QUERIES = 64
COMPARED = 16  # queries whose confidences are also worked out from all videos
K = 10
STEPS = ("fill", "search", "recall", "change")
BARS = {"open_ms": 100, "search_p50_ms": 50, "memory_mb": 1024}


def fill(folder: Path, source: Path, clips: int) -> dict[str, Any]:
    """Make a library of `clips` clips with a query bank and an index, as far as it is not there."""
    with Library(folder) as library:
        model, store = library.model, library.store
        have = store.stats().files
        report = {}
        if have < clips // CLIPS:
            with Library(source, create=False) as real:
                originals = read_originals(real.store, store, model)
            before = time.process_time()
            add_videos(store, model, originals, have, clips // CLIPS - have)
            busy = time.process_time() - before
            report["fill_cpu_s_per_10000_clips"] = 1e4 * busy / (clips - have * CLIPS)
        if not list_banks(store):
            create_bank(store, "everyday", everyday_queries()[1::3], "benchmark")
        built, seconds = _timed(lambda: build_index(store, model))
        if built is not None:
            report["build_index_s"] = seconds
        report["first_search_with_a_bank_s"] = _timed(
            lambda: _search_once(Searcher.open(store, model, choose_scoring))
        )[1]
        return report


def search(folder: Path, queries: int) -> dict[str, Any]:
    """Open the library and search it."""
    library = Library(folder)
    library.model.encode(["warm"])
    memory = _PeakMemory()
    opened, seconds = _timed(lambda: Searcher.open(library.store, library.model, choose_scoring))
    report: dict[str, Any] = {
        "clips": len(opened),
        "load_average": os.getloadavg()[0],
        "open_ms": 1e3 * seconds,
    }
    report["first_search_ms"] = 1e3 * _timed(lambda: _search_once(opened))[1]
    held_out = everyday_queries()[::3]
    asked = [held_out[number % len(held_out)] for number in range(queries)]
    _timed(lambda: opened.search(Query(held_out[0], norm="none")))
    times: dict[str, list[float]] = {NORM: [], "none": []}
    busy: dict[str, list[float]] = {NORM: [], "none": []}
    for number, text in enumerate(asked):  # both in turns, each as often first
        for norm in NORMS[:: 1 if number % 2 else -1]:
            before = time.process_time()
            times[norm].append(_timed(lambda: opened.search(Query(text, norm=norm)))[1])  # noqa: B023
            busy[norm].append(time.process_time() - before)
    report |= {
        "search_p50_ms": 1e3 * float(np.median(times[NORM])),
        "search_p95_ms": 1e3 * float(np.quantile(times[NORM], 0.95)),
        "plain_p50_ms": 1e3 * float(np.median(times["none"])),
        # Of all cores: what other programs take is not in it.
        "search_cpu_ms": 1e3 * float(np.median(busy[NORM])),
        "plain_cpu_ms": 1e3 * float(np.median(busy["none"])),
        "answers_per_second_16_clients": len(asked) / _clients(opened, asked),
    }
    report["memory_mb"], report["memory_before_open_mb"] = memory.stop(), memory.before
    report["index"] = str(opened.snapshot.opened_index)
    report["videos"] = opened.snapshot.video_count()
    report["disk_mb"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
    return report


def recall(folder: Path) -> dict[str, Any]:
    """Compare the index with exact search, and confidences with those of a look at all videos."""
    with Library(folder) as library:
        opened = Searcher.open(library.store, library.model, choose_scoring)
        held_out = everyday_queries()[::3]
        return {
            "recall_at_10": _recall(opened, held_out[:RECALL_QUERIES]),
            "confidence": _confidence_differences(opened, held_out[:COMPARED]),
        }


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
    methods = [method_for(embedded, name) for name in FOLDED]
    fitted = fit_all(embedded.bank, embedded.vectors, gallery, methods)  # in one pass
    corrections: dict[str, Correction | None] = {"none": None}
    for method, state in zip(methods, fitted, strict=True):
        active = state.active(gallery.ids) if method.gated else None
        corrections[method.name] = Correction(state.bias(gallery.ids), active)
    recalls = {}
    for name, correction in corrections.items():
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
        ranked, _ = search.rank(None, query)
        rows = np.array([scored.row for scored in ranked], np.int64)
        every = plain + text.lexical.of(everything.rows)
        best = everything.best(every)
        known = search.rivals
        rivals = RivalScores(every[best].astype(np.float32), known.videos, known.best)
        whole = scoring.confidence(search.plain(rows), rows, rivals)
        confidences = search.confidences(rows)
        assert confidences is not None
        differences.append(np.abs(whole - confidences))
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
    parser.add_argument("--out", type=Path, default=Path("results/index/library"))
    parser.add_argument("--steps", help="only these of the steps; keeps the libraries")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.step:
        folder = given.folder / f"million-{sizes[0]}"
        work = {
            "fill": lambda: fill(folder, given.library, sizes[0]),
            "search": lambda: search(folder, given.queries),
            "recall": lambda: recall(folder),
            "change": lambda: change(folder, sizes[0]),
        }
        print(json.dumps(work[given.step]()))
        return
    reports = [_measured(given, size) for size in sizes]
    if all(set(STEPS) <= set(report) for report in reports):
        flat = [{name: value for step in STEPS for name, value in report[step].items()} for report in reports]
        _write(given.out, sizes, flat)


def _measured(given: argparse.Namespace, size: int) -> dict[str, Any]:
    """The reports of the steps so far, those that are wanted measured now."""
    library, notes = given.folder / f"million-{size}", given.folder / f"million-{size}.json"
    reports: dict[str, Any] = json.loads(notes.read_text()) if notes.exists() else {}
    for step in given.steps.split(",") if given.steps else STEPS:
        command = [sys.executable, __file__, "--library", str(given.library), "--sizes", str(size)]
        command += ["--folder", str(given.folder), "--queries", str(given.queries), "--step", step]
        environment = {**os.environ, **({"OPENBLAS_NUM_THREADS": "1"} if step == "search" else {})}
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
        reports[step] = {**reports.get(step, {}), **json.loads(done.stdout.splitlines()[-1])}
        print(json.dumps({"clips": size, step: reports[step]}, indent=2), flush=True)
        notes.write_text(json.dumps(reports))
    if not given.steps:
        shutil.rmtree(library)
        notes.unlink()
    return reports


def _write(out: Path, sizes: list[int], reports: list[dict[str, Any]]) -> None:
    """The table and the plot."""
    lines = ("open_ms", "search_p50_ms", "search_p95_ms", "memory_mb", "add_100_s", "delete_100_s")
    slopes = {name: _slope(sizes, [report[name] for report in reports]) for name in lines}
    result = {"bars_at_1000000": BARS, "sizes": reports, "slopes": slopes}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".json").write_text(json.dumps(result, indent=2) + "\n")
    names = {
        name: f"{name} (slope {slopes[name]:.2f})" if slopes[name] is not None else name for name in lines
    }
    series = [Series(names[name], sizes, [report[name] for report in reports]) for name in lines]
    chart = line_chart(
        series, "A library of up to a million clips", "clips", log_x=True, log_y=True, zero=False
    )
    out.with_suffix(".svg").write_text(chart)


if __name__ == "__main__":
    main()
