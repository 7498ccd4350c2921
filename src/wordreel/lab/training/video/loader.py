"""Load batches of frames: worker processes decode ahead into shared memory. No torch.

Each worker is given its share of several batches in advance, so that it never waits for this process. A
worker that dies or hangs over a file is replaced, and the file is given up.
"""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import TrainingError
from wordreel.lab.training.video.decode_frames import FrameSpec, Uint8
from wordreel.lab.training.video.frame_memory import FrameMemory, FrameMemoryLayout
from wordreel.types import Int64
from wordreel.util.child_process import ChildProcess, ProcessGone

RESTARTS = 20  # of workers that die over no file
PATIENCE = 60.0  # seconds that all workers together may take for one more answer
WORKER = "wordreel.lab.training.video.loader_worker"
PICTURES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})


@dataclass
class LoadedFrames:
    """`pixels [b, frames, size, size, 3]`, a view that is valid until the next batch, and `counts [b]`.

    The first `counts[i]` frames are real; 0 if the file could not be read. A consumer that copies `pixels`
    later sets `wait`, which is called before the memory is used again.
    """

    items: Int64
    pixels: Uint8
    counts: Int64
    wait: Callable[[], None] | None = None


@dataclass
class _Batch:
    slot: int
    items: Int64
    frames: int
    left: int  # answers still to come


@dataclass
class _Worker:
    process: ChildProcess
    tasks: list[dict[str, Any]] = field(default_factory=list)  # sent and not answered


class FrameLoader:
    """Loads the frames of files by their numbers.

    Args:
        paths: The files, videos and pictures.
        spec: Which frames are read, and their size.
        batch: The largest batch.
        workers: Processes that decode.
        ahead: Batches that are loaded in advance.
        cache_bytes: Memory for decoded videos, so that later epochs need not decode them again.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        spec: FrameSpec,
        batch: int,
        *,
        workers: int = 1,
        ahead: int = 3,
        cache_bytes: int = 0,
    ) -> None:
        self.paths, self.spec = [str(path) for path in paths], spec
        self.failed: dict[int, str] = {}
        self._restarts = 0
        self.waited = 0.0  # seconds that consumers waited for a batch
        most = np.array([1 if path.suffix.lower() in PICTURES else spec.most for path in paths])
        self._most: Int64 = most.astype(np.int64)
        sizes = self._most * (3 * spec.size * spec.size)
        ends = np.cumsum(sizes)
        held = ends <= cache_bytes
        self._offsets = np.where(held, ends - sizes, -1)
        used = int(ends[held].max()) if held.any() else 0
        layout = FrameMemoryLayout(
            ahead + 1, batch, int(most.max()), spec.size, workers, len(self.paths), used
        )
        self.memory = FrameMemory(layout)
        self._facts = json.dumps({"layout": layout.to_json(), "spec": asdict(spec)})
        self._selector = selectors.DefaultSelector()
        self._workers = [self._start(number) for number in range(workers)]

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.process.close()
        self._workers = []
        self._selector.close()
        self.memory.close()

    def load(self, batches: Iterable[Int64]) -> Iterator[LoadedFrames]:
        """Batches of files by number, in order."""
        waiting, source = list[_Batch](), iter(batches)
        free = list(range(self.memory.layout.slots))
        self._by_number: dict[int, _Batch] = {}
        number = 0
        try:
            while True:
                while free and (items := next(source, None)) is not None:
                    waiting.append(self._send(number, free.pop(0), items))
                    number += 1
                if not waiting:
                    return
                began = time.perf_counter()
                self._wait_for(waiting[0])
                self.waited += time.perf_counter() - began
                batch = waiting.pop(0)
                pixels = self.memory.slot(batch.slot, len(batch.items), batch.frames)
                counts = self.memory.counts[batch.slot, : len(batch.items)].astype(np.int64)
                loaded = LoadedFrames(batch.items, pixels, counts)
                yield loaded
                if loaded.wait is not None:
                    loaded.wait()
                free.append(batch.slot)
        except GeneratorExit:  # the consumer stops early: what was sent is still answered
            for batch in waiting if self._workers else ():
                self._wait_for(batch)
            raise

    def _send(self, number: int, slot: int, items: Int64) -> _Batch:
        if not 0 < len(items) <= self.memory.layout.batch:
            raise TrainingError(f"a batch has 1 to {self.memory.layout.batch} videos, not {len(items)}")
        frames = int(self._most[items].max())
        self.memory.counts[slot] = 0
        shares: list[list[list[Any]]] = [[] for _ in self._workers]
        for row, item in enumerate(items.tolist()):
            if item not in self.failed:
                entry = [row, item, self.paths[item], int(self._most[item]), int(self._offsets[item])]
                shares[(row + number) % len(shares)].append(entry)
        batch = _Batch(slot, items, frames, sum(bool(share) for share in shares))
        self._by_number[number] = batch
        for worker, share in zip(self._workers, shares, strict=True):
            if share:
                task = {"batch": number, "slot": slot, "rows": len(items), "frames": frames, "files": share}
                worker.tasks.append(task)
                _write(worker, task)
        return batch

    def _wait_for(self, batch: _Batch) -> None:
        heard = time.perf_counter()
        while batch.left:
            ready = self._selector.select(timeout=1.0)
            for key, _ in ready:
                self._read(key.data)
            now = time.perf_counter()
            heard = now if ready else heard
            if now - heard > PATIENCE:
                for worker in [w for w in self._workers if w.tasks]:
                    worker.process.kill()
                heard = now

    def _read(self, worker: _Worker) -> None:
        try:
            answer = worker.process.receive()
        except ProcessGone:
            self._replace(worker)
            return
        worker.tasks.pop(0)
        self._by_number[answer["batch"]].left -= 1
        if not self._by_number[answer["batch"]].left:
            del self._by_number[answer["batch"]]
        self.failed |= {int(item): str(reason) for item, reason in answer["failed"]}

    def _replace(self, dead: _Worker) -> None:
        """Start another worker on what a dead one had left, without the file that it died of."""
        number = self._workers.index(dead)
        item = int(self.memory.current[number])
        self._selector.unregister(dead.process.link)
        status = dead.process.exit_status(1.0)
        dead.process.close()
        self._restarts += 1
        if item >= 0:
            self.failed[item] = "decoding it crashed or took too long"
        elif self._restarts > RESTARTS:
            raise TrainingError(f"loader workers end with status {status}")
        worker = self._workers[number] = self._start(number)
        for task in dead.tasks:
            task["files"] = [entry for entry in task["files"] if entry[1] != item]
            worker.tasks.append(task)
            _write(worker, task)

    def _start(self, number: int) -> _Worker:
        self.memory.current[number] = -1
        process = ChildProcess(
            WORKER,
            *(str(self.memory.descriptor), str(number), self._facts),
            environment={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            descriptors=[self.memory.descriptor],
        )
        worker = _Worker(process)
        self._selector.register(process.link, selectors.EVENT_READ, worker)
        return worker


def _write(worker: _Worker, task: dict[str, Any]) -> None:
    with suppress(ProcessGone):  # its end is noticed where its answers are read
        worker.process.send(task)
