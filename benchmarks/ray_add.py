"""`add` on a local Ray cluster: the same tracks as one process, from one worker to two, and with both killed.

    python benchmarks/ray_add.py FOLDER [--clips 40] [--experts appearance,shots]

Adds the first clips of a folder (all with `--clips 0`) four times: in one process, on one Ray worker, on two
workers that are nodes of their own, and on two of which a worker and then a whole node are killed. Loading
the experts is not counted. `efficiency` is the time on one worker over twice the time on two. On a machine
with other work `cpu_ratio` (processor time of the experts on one worker over that on two) and `busy` (the
share of its time that a worker has a file) say more. `same_tracks` compares the hashes of all tracks. JSON on
standard output. Needs `wordreel[ray]`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from wordreel.catalogue.store import LibraryStore
from wordreel.experts import registry
from wordreel.ingest.add import add, add_on
from wordreel.ingest.worker_extractor import ExtractSetup, LoadFrom
from wordreel.maintain.verify import verify
from wordreel.media import Fence
from wordreel.runtime.sessions import shared_by
from wordreel.runtime.store import WeightStore
from wordreel.workers.executor import Executor
from wordreel.workers.ray_worker import ray_executor

STORE_MEMORY = 100 * 2**20


@dataclass
class Case:
    """One `add` of all clips."""

    seconds: float
    cpu_seconds: float
    busy: float
    added: int
    failed: int
    tracks: dict[tuple[str, str], str | None]
    problems: int


def cpu_seconds() -> float:
    """Processor time of this process so far, without that of its decoders."""
    return time.process_time()


def tracks_of(store: LibraryStore) -> dict[tuple[str, str], str | None]:
    return {(row.content, row.expert): row.hash for row in store.tracks()}


def here(folder: Path, names: list[str], library: Path) -> Case:
    """All clips in this process, one after the other."""
    with shared_by(2):
        experts = [registry.load(name) for name in names]
    began, cpu = time.perf_counter(), cpu_seconds()
    with LibraryStore.create_or_open(library) as store:
        with Fence() as fence:
            report = add(store, [folder], experts, fence, jobs=1)
        seconds = time.perf_counter() - began
        return Case(
            seconds,
            cpu_seconds() - cpu,
            1.0,
            len(report.added),
            len(report.failed),
            tracks_of(store),
            len(verify(store)),
        )


def on_ray(
    cluster: Cluster,
    count: int,
    folder: Path,
    names: list[str],
    library: Path,
    disturb: Callable[[LibraryStore, Executor], None] | None = None,
) -> Case:
    """All clips on Ray workers, with their networks loaded before the clock starts."""
    busy: list[float] = []
    with ray_executor(cluster.address, count) as executor, LibraryStore.create_or_open(library) as store:
        _time_calls(executor, busy)
        setup = ExtractSetup.of(store, names, LoadFrom(WeightStore().root))
        barrier = [(setup, second) for second in range(count)]
        list(executor.map(_load, barrier))
        cpu = sum(executor.map(_cpu_after, [(1.0,)] * count))
        busy.clear()
        began = time.perf_counter()
        if disturb is not None:
            threading.Thread(target=disturb, args=(store, executor), daemon=True).start()
        report = add_on(executor, store, [folder], setup)
        seconds = time.perf_counter() - began
        share = sum(busy) / (seconds * count)
        cpu = 0.0 if disturb else sum(executor.map(_cpu_after, [(1.0,)] * count)) - cpu
        return Case(
            seconds,
            cpu,
            share,
            len(report.added),
            len(report.failed),
            tracks_of(store),
            len(verify(store)),
        )


def _time_calls(executor: Executor, busy: list[float]) -> None:
    """Count the seconds in which workers have a call."""
    take = executor._take

    def timed() -> tuple[int, Any]:
        number, worker = take()
        call = worker.call

        def timed_call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                busy.append(time.perf_counter() - began)
                worker.call = call  # type: ignore[method-assign]

        worker.call = timed_call  # type: ignore[method-assign]
        return number, worker

    executor._take = timed  # type: ignore[method-assign]


def _load(setup: ExtractSetup, number: int) -> None:
    from wordreel.ingest.worker_extractor import _fingerprints

    _fingerprints(setup)
    time.sleep(3.0)  # so that the next worker takes the next call


def _cpu_after(seconds: float) -> float:
    time.sleep(seconds)
    return cpu_seconds()


def kill_both(cluster: Cluster, files: int) -> Callable[[LibraryStore, Executor], None]:
    """Kill a worker after a quarter of the files, and a node after half of them."""

    def disturb(store: LibraryStore, executor: Executor) -> None:
        with LibraryStore.open(store.path) as mine:
            while len(mine.files()) < files // 4:
                time.sleep(0.2)
            os.kill(executor.run(os.getpid), signal.SIGKILL)
            while len(mine.files()) < files // 2:
                time.sleep(0.2)
        cluster.remove_node(sorted(cluster.worker_nodes, key=str)[0], allow_graceful=False)

    return disturb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--experts", default=",".join(registry.default_names()))
    options = parser.parse_args()
    names = options.experts.split(",")
    with tempfile.TemporaryDirectory() as scratch:
        folder, root = Path(scratch) / "clips", Path(scratch)
        folder.mkdir()
        for path in sorted(options.folder.iterdir())[: options.clips or None]:
            (folder / path.name).symlink_to(path.resolve())
        files = len(list(folder.iterdir()))
        cluster = Cluster(True, head_node_args={"num_cpus": 0, "object_store_memory": STORE_MEMORY})
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=STORE_MEMORY)
        cases = {"one process": here(folder, names, root / "here")}
        cases["one worker"] = on_ray(cluster, 1, folder, names, root / "one")
        cases["two workers"] = on_ray(cluster, 2, folder, names, root / "two")
        disturb = kill_both(cluster, files)
        cases["a worker and a node killed"] = on_ray(cluster, 2, folder, names, root / "killed", disturb)
        ray.shutdown()
        cluster.shutdown()
    expected = cases["one process"].tracks
    one, two = cases["one worker"], cases["two workers"]
    rows = {
        name: {
            k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(case).items() if k != "tracks"
        }
        | {"tracks": len(case.tracks), "same_tracks": case.tracks == expected}
        for name, case in cases.items()
    }
    summary = {
        "clips": files,
        "experts": names,
        "load_average": os.getloadavg()[0],
        "efficiency": round(one.seconds / (2 * two.seconds), 3),
        "cpu_ratio": round(one.cpu_seconds / two.cpu_seconds, 3),
        "cases": rows,
    }
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
