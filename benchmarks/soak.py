"""A server under load for minutes: does it grow, slow down, lose anything, refuse and stop as promised?

    python benchmarks/soak.py [--seconds 600] [--clients 8] [--media FOLDER] [--out results/soak]

Runs `wordreel serve` on loopback over a small library of generated clips, or of the files in FOLDER. Most
clients search, a quarter play ranges of files and compare the bytes, one adds and removes clips over HTTP,
each add a job with all experts. Memory, open files and files on disk are sampled; "start" is the second sixth
of the time, "end" the last.

Then: SIGTERM with searches and an add on their way (each request is answered or refused, the exit status is
0, what was committed is there), a second server on the same library that finishes the add, and more clients
at once than it allows (each answered or refused with 503 or 429 in the shape of every error). Exits with 1
where something of this does not hold. Needs the weights: `wordreel weights fetch`.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from soak_clients import Load, playback_clients, search_clients, writer
from soak_server import JOB, PROMPT, VIDEOS, WORDREEL, Server, clip, served

from wordreel.catalogue.store import LibraryStore
from wordreel.maintain.verify import verify
from wordreel.models.joint.text_tower import CACHED

SHAPE = {"code", "message", "field", "next_step"}
SAMPLE_EVERY = 2.0  # seconds
CROWD = 700  # requests at once, of which one client may have 384 answered


def disk(library: Path) -> dict[str, int]:
    sizes = []
    for path in library.rglob("*"):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(status.st_mode):
            sizes.append(status.st_size)
    return {"files": len(sizes), "disk_mib": sum(sizes) >> 20}


def latencies(load: Load, first: float, last: float) -> dict[str, dict[str, float]]:
    """Milliseconds of what ended between two times, by kind."""
    found = {}
    for kind, rows in load.took.items():
        some = [took * 1e3 for at, took in rows if first <= at < last]
        if some:
            p50, p99 = np.percentile(some, [50, 99]).round(1).tolist()
            found[kind] = {"count": len(some), "p50_ms": p50, "p99_ms": p99}
    return found


def soak(server: Server, library: Path, media: Path, seconds: float, clients: int) -> dict[str, Any]:
    """Everything at once for so long."""
    files = {item["content"]: media / item["name"] for item in server.json("GET", VIDEOS)["items"]}
    load = Load()
    threads = search_clients(server, load, max(1, clients - clients // 4 - 1))
    threads += [*playback_clients(server, load, files, max(1, clients // 4)), writer(server, load, media)]
    for thread in threads:
        thread.start()
    samples = []
    while (now := time.monotonic() - load.began) < seconds:
        samples.append({"at": round(now, 1), **server.usage(), **disk(library)})
        time.sleep(SAMPLE_EVERY)
    load.stop.set()
    for thread in threads:
        thread.join(PROMPT)
    sixth = seconds / 6
    start, end = (sixth, 2 * sixth), (5 * sixth, seconds)
    sixths = [_mean(samples, number * sixth, (number + 1) * sixth)["rss_mib"] for number in range(6)]
    later = [sample for sample in samples if sample["at"] >= seconds / 2]
    slope = np.polyfit([s["at"] / 60 for s in later], [s["rss_mib"] for s in later], 1)[0]
    return {
        "seconds": round(seconds),
        "clients": clients,
        "requests": {kind: len(rows) for kind, rows in sorted(load.took.items())},
        "added": len(load.took.get("add", [])),
        "removed": load.removed,
        "errors": dict(load.errors),
        "start": {"latency": latencies(load, *start), **_mean(samples, *start)},
        "end": {"latency": latencies(load, *end), **_mean(samples, *end)},
        "rss_mib_of_each_sixth": sixths,
        "rss_slope_mib_per_minute_of_the_second_half": round(float(slope), 2),
        "samples": samples[:: max(1, len(samples) // 60)],
    }


def _mean(samples: list[dict[str, Any]], first: float, last: float) -> dict[str, float]:
    some = [sample for sample in samples if first <= sample["at"] < last] or samples
    return {key: round(float(np.median([s[key] for s in some])), 1) for key in some[0] if key != "at"}


def graceful_stop(server: Server, library: Path, media: Path) -> dict[str, Any]:
    """SIGTERM with searches, playback and an add on their way."""
    path = clip(media / "last.mp4", 99)
    job = server.json("POST", "/api/folders", {"path": str(path)})["job"]
    before = len(server.json("GET", VIDEOS)["items"])
    counts: Counter[str] = Counter()
    going = threading.Barrier(17)

    def ask(number: int) -> None:
        going.wait()
        try:
            status, body = server.ask("GET", f"/api/search?text=something+number+{number}")
            counts["answered" if status == 200 else _refusal(status, body)] += 1
        except (OSError, http.client.HTTPException):
            counts["connection refused or closed"] += 1

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    going.wait()
    began = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait(PROMPT)
    took = time.monotonic() - began
    for thread in threads:
        thread.join(PROMPT)
    with LibraryStore.open(library) as store:
        here = len(store.videos())
        problems = [problem.what for problem in verify(store) if not problem.note]
    return {
        "exit_status": code,
        "seconds": round(took, 1),
        "requests": dict(counts),
        "videos_before": before,
        "videos_after": here,
        "problems": problems,
        "job": job["id"],
    }


def _refusal(status: int, body: bytes) -> str:
    """The status of an error in the promised shape."""
    try:
        error = json.loads(body)["error"]
        right = set(error) == SHAPE and bool(error["message"])
    except (ValueError, KeyError, TypeError):
        right = False
    return f"{status} {error['code']}" if right else f"{status} of another shape"


async def crowd(port: int, count: int) -> Counter[str]:
    """So many searches at once, each on a connection of its own."""
    counts: Counter[str] = Counter()

    async def one(number: int) -> None:
        try:
            reader, stream = await asyncio.open_connection("127.0.0.1", port)
            path = f"/api/search?text=crowd+{number}"
            stream.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.read(-1), PROMPT)
            stream.close()
            head, _, body = answer.partition(b"\r\n\r\n")
            status = int(head[9:12]) if head.startswith(b"HTTP/1.1 ") else 0
            counts["200" if status == 200 else _refusal(status, body)] += 1
        except OSError as error:
            counts[type(error).__name__] += 1

    await asyncio.gather(*(one(number) for number in range(count)))
    return counts


def finished(server: Server, number: int) -> str:
    """The end of the add that the first server left."""
    until = time.monotonic() + JOB
    while (state := server.json("GET", f"/api/jobs/{number}")["job"]["state"]) in ("queued", "running"):
        assert time.monotonic() < until, "the job is not resumed"
        time.sleep(0.2)
    return str(state)


def faults(report: dict[str, Any]) -> list[str]:
    """What does not hold of what was promised."""
    run, stop, over = report["soak"], report["stop"], report["overload"]
    found = [f"error: {text} ({count})" for text, count in run["errors"].items()]
    if stop["exit_status"] != 0:
        found.append(f"the exit status after SIGTERM is {stop['exit_status']}")
    if stop["problems"] or stop["videos_after"] < stop["videos_before"]:
        found.append(
            f"after the stop: {stop['videos_after']} of {stop['videos_before']} videos, {stop['problems']}"
        )
    if stop["resumed_as"] != "done":
        found.append(f"the add that was on its way ended as {stop['resumed_as']}")
    for key, count in over["answers"].items():
        if not key.startswith(("200", "503")):
            found.append(f"overload: {key} ({count})")
    start, end = run["start"], run["end"]
    sixths = run["rss_mib_of_each_sixth"]
    if end["rss_mib"] > 1.15 * start["rss_mib"] + 32 or sixths[-1] > 1.03 * sixths[3]:
        found.append(f"memory grew: {sixths} MiB in the sixths of the time")
    if end["open_files"] > start["open_files"] + 16 or end["files"] > start["files"] + 64:
        open_files = f"open {start['open_files']} to {end['open_files']}"
        found.append(f"files grew: {open_files}, on disk {start['files']} to {end['files']}")
    return found


def page(report: dict[str, Any]) -> str:
    run, stop, over = report["soak"], report["stop"], report["overload"]
    rows = []
    for kind in run["requests"]:
        first, last = (run[part]["latency"].get(kind, {}) for part in ("start", "end"))
        cells = (
            kind,
            run["requests"][kind],
            *(each.get(key, "–") for key in ("p50_ms", "p99_ms") for each in (first, last)),
        )
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    usage = [
        f"| {key} | {run['start'][key]:g} | {run['end'][key]:g} |"
        for key in ("rss_mib", "threads", "open_files", "files", "disk_mib")
    ]
    about = (
        f"`{report['command']}` on {report['cores']} cores, Python {report['python']}: {run['seconds']} "
        f"seconds, {run['clients']} clients; {run['added']} clips added with all experts, {run['removed']} "
        f'removed, {sum(run["errors"].values())} errors. "Start" and "end" are the second and the last '
        "sixth of the time."
    )
    sixths = run["rss_mib_of_each_sixth"]
    memory = f"{run['rss_slope_mib_per_minute_of_the_second_half']:+g} MiB a minute"
    stopped = (
        f"SIGTERM with 16 searches and an add on their way: {_listed(stop['requests'])}; exit status "
        f"{stop['exit_status']} after {stop['seconds']} s; {stop['videos_after']} of {stop['videos_before']} "
        f"videos there, `wordreel verify` finds {len(stop['problems'])} problems; the next server ended the "
        f"add as {stop['resumed_as']}."
    )
    crowded = (
        f"{over['requests']} searches at once: {_listed(over['answers'])}; uvicorn refuses those beyond its "
        "limit by a plain 503."
    )
    table = (
        "| request | answered | p50 start (ms) | p50 end | p99 start | p99 end |\n|---|--:|--:|--:|--:|--:|"
    )
    parts = [
        "# A server under load",
        about,
        "\n".join([table, *rows]),
        "\n".join(["| of the server | start | end |", "|---|--:|--:|", *usage]),
        f"Memory in the sixths of the time, medians: {', '.join(f'{mib:g}' for mib in sixths)} MiB; in the "
        f"second half {memory}. The cache of query embeddings is full after {CACHED} different queries.",
        stopped,
        crowded,
        "What does not hold: " + ("; ".join(report["faults"]) or "nothing") + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} × {key}" for key, count in sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--media", type=Path, help="real files instead of generated ones; they are copied")
    parser.add_argument("--out", type=Path, default=Path("results/soak"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wordreel-soak-") as name:
        media, library = Path(name) / "media", Path(name) / "library"
        media.mkdir()
        if given.media:
            for path in sorted(given.media.iterdir())[:24]:
                shutil.copy(path, media)
        else:
            for number in range(12):
                clip(media / f"clip{number}.mp4", number)
        subprocess.run(
            [*WORDREEL, "add", str(media), "-L", str(library)], check=True, stdout=subprocess.DEVNULL
        )
        report: dict[str, Any] = {
            "command": f"python benchmarks/soak.py --seconds {given.seconds:g} --clients {given.clients}",
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        }
        with served(library, media) as server:
            report["soak"] = soak(server, library, media, given.seconds, given.clients)
            report["stop"] = graceful_stop(server, library, media)
        with served(library, media) as server:
            report["stop"]["resumed_as"] = finished(server, report["stop"]["job"])
            report["overload"] = {"requests": CROWD, "answers": dict(asyncio.run(crowd(server.port, CROWD)))}
    report["faults"] = faults(report)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "soak.json").write_text(json.dumps(report, indent=1) + "\n")
    (given.out / "README.md").write_text(page(report))
    print(page(report))
    sys.exit(1 if report["faults"] else 0)


if __name__ == "__main__":
    main()
