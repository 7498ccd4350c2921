"""How fast a server answers: a library and a number of clients at once.

    python benchmarks/serve.py LIBRARY [--seconds 10] [--limit 24] [--workers N] [--before SRC] [--rounds 1]

Starts `wordreel serve` on the library and asks it for some seconds at each of 1, 16 and 64 clients, first
with words that it has not met (every query is encoded), then with a hundred queries again and again
(cached). Each number of clients first asks for some seconds that do not count, until caches are full.
`--workers` may be given several times, and `--before` names the `src` folder of another version, measured
with its default: all take turns, round by round, and the report has the median of each figure over the
rounds. Every client keeps its connection and asks as soon as it is answered. `cpu_ms` is the server's
processor time an answer, and `per_second_of_cpu` what all cores could answer at best if they did nothing
else: other work on the machine moves it far less than `per_second`. `memory_mb` is what the server's
processes hold, pages that they share counted once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from wordreel.banks.sources import everyday_queries

CLIENTS = (1, 16, 64)
WARMUP = 3.0  # seconds
DEFAULT = "default"  # number of workers


def family(process: int) -> list[int]:
    """A process and its children."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [process, *(int(child) for task in tasks for child in task.read_text().split())]


def cpu_seconds(process: int) -> float:
    """Processor time of a process, its children, and all their threads."""
    total = 0
    for one in family(process):
        fields = Path(f"/proc/{one}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def memory_mb(process: int) -> float:
    """Of a process and its children; a page that several hold counts in parts."""
    held = 0
    for one in family(process):
        lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        held += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return round(held / 1024, 1)


@contextmanager
def served(library: str, source: Path | None = None, workers: str = DEFAULT) -> Iterator[tuple[int, int]]:
    """A server on a free port, until it is no longer needed: the port and the process."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-c", "from wordreel.cli import main; main()", "serve", "-L", library]
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    if source is not None:
        env["PYTHONPATH"] = str(source)
    more = ["--workers", workers] if workers != DEFAULT else []
    process = subprocess.Popen([*command, "--port", str(port), *more], stdout=subprocess.DEVNULL, env=env)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise SystemExit("the server did not start")
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str
) -> tuple[int, bytes]:
    """One request over a connection that stays."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length"))
    return int(lines[0].split()[1]), await reader.readexactly(length)


async def client(port: int, texts: Iterator[str], limit: int, until: float) -> list[float]:
    """The latency of each answer, in milliseconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    took: list[float] = []
    while time.perf_counter() < until:
        path = "/api/search?" + urlencode({"text": next(texts), "limit": limit})
        began = time.perf_counter()
        status, body = await ask(reader, writer, port, path)
        took.append((time.perf_counter() - began) * 1e3)
        assert status == 200, body[:300]
    writer.close()
    return took


async def load(
    server: tuple[int, int], clients: int, texts: Iterator[str], limit: int, seconds: float
) -> dict[str, object]:
    port, process = server
    began, cpu = time.perf_counter(), cpu_seconds(process)
    found = await asyncio.gather(*(client(port, texts, limit, began + seconds) for _ in range(clients)))
    elapsed, cpu = time.perf_counter() - began, cpu_seconds(process) - cpu
    took = np.concatenate(found)
    p50, p95, p99 = np.percentile(took, [50, 95, 99]).round(1).tolist()
    return {
        "clients": clients,
        "answers": len(took),
        "per_second": round(len(took) / elapsed, 1),
        "cpu_ms": round(1e3 * cpu / len(took), 2),
        "per_second_of_cpu": round((os.cpu_count() or 1) * len(took) / cpu, 1),
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
    }


def fresh(seed: int) -> Iterator[str]:
    """Sentences that do not come again."""
    pool, rng = everyday_queries(), random.Random(seed)
    while True:
        yield f"{rng.choice(pool)} {rng.choice(pool)}"


def measure(
    given: argparse.Namespace, source: Path | None, workers: str, seed: int
) -> dict[str, list[dict[str, Any]]]:
    """One server under every load."""
    report: dict[str, list[dict[str, Any]]] = {}
    with served(given.library, source, workers) as server:
        first, others, again = fresh(seed), fresh(seed + 1), cycle(everyday_queries()[:100])
        for clients in given.clients:
            asyncio.run(load(server, clients, first, given.limit, WARMUP))
            for name, texts in (("new", others), ("repeated", again)):
                row = asyncio.run(load(server, clients, texts, given.limit, given.seconds))
                report.setdefault(name, []).append({**row, "memory_mb": memory_mb(server[1])})
    return report


def median(values: list[Any]) -> Any:
    """Of numbers; of objects and lists, of each of their parts."""
    if isinstance(values[0], dict):
        return {name: median([value[name] for value in values]) for name in values[0]}
    if isinstance(values[0], list):
        return [median(list(parts)) for parts in zip(*values, strict=True)]
    return None if None in values else round(float(np.median(values)), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--limit", type=int, default=24, help="hits")
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--workers", action="append", help="as of `wordreel serve`, or default")
    parser.add_argument("--before", type=Path, help="the src folder of the version to compare with")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where to write the report")
    given = parser.parse_args()
    servers: dict[str, tuple[Path | None, str]] = {"before": (given.before, DEFAULT)} if given.before else {}
    servers |= {f"{workers} workers": (None, workers) for workers in given.workers or [DEFAULT]}
    rounds: dict[str, list[Any]] = {name: [] for name in servers}
    for number in range(given.rounds):
        for name, (source, workers) in servers.items():
            rounds[name].append(measure(given, source, workers, 10 * number))
    report = {"limit": given.limit, "cores": os.cpu_count(), "rounds": given.rounds}
    report |= {name: median(found) for name, found in rounds.items()}
    print(json.dumps(report, indent=2))
    if given.out:
        given.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
