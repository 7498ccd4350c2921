"""Load batches of frames: worker processes decode ahead, straight into the memory of a batch.

Each thread of a pool asks one worker for one file at a time. A worker that dies or hangs is replaced; a file
that does so twice is given up.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.training.frames.decode_frames import FrameSpec, Uint8
from wordreel.types import Int64
from wordreel.util.child_process import ChildProcess, ProcessGone, ProtocolError, get_int, get_text

TIMEOUT = 60.0  # seconds for one file
GONE = (ProcessGone, ProtocolError, TimeoutError, OSError)
WORKER = "wordreel.lab.training.frames.frame_worker"
PICTURES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})


class FrameLoader:
    """Loads the frames of files by their numbers.

    Args:
        paths: The files, videos and pictures.
        spec: Which frames are read, and their size.
        workers: Processes that decode.
        ahead: Batches that are loaded in advance.
        cache_bytes: Memory for decoded videos, so that later epochs need not decode them again.
        pinned: Whether batches are in memory that a GPU copies from beside its work.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        spec: FrameSpec,
        *,
        workers: int = 1,
        ahead: int = 3,
        cache_bytes: int = 0,
        pinned: bool = False,
    ) -> None:
        self.paths, self.spec, self.ahead, self.pinned = paths, spec, ahead, pinned
        self.failed: dict[int, str] = {}
        self.longest = np.array([1 if path.suffix.lower() in PICTURES else spec.most for path in paths])
        self._cache: dict[int, Uint8] = {}
        self._cache_left = cache_bytes
        self._running: set[ChildProcess] = set()
        self._closed = False
        self._workers: SimpleQueue[ChildProcess | None] = SimpleQueue()  # None: to be started
        for _ in range(workers):
            self._workers.put(None)
        self._threads = ThreadPoolExecutor(workers, "frames")

    def load(self, batches: Iterable[Int64]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield `frames [b, frames, size, size, 3]` uint8 and `counts [b]` of batches of files, in order.

        The first `counts[i]` frames are real; 0 if the file could not be read.
        """
        loading: deque[tuple[Tensor, list[Future[int]]]] = deque()
        source = iter(batches)
        try:
            while True:
                while len(loading) <= self.ahead and (items := next(source, None)) is not None:
                    loading.append(self._submit(items))
                if not loading:
                    return
                frames, counts = loading.popleft()
                yield frames, torch.tensor([count.result() for count in counts])
        finally:  # the consumer may stop early
            for _, counts in loading:
                for count in counts:
                    count.cancel()

    def close(self) -> None:
        """End the workers."""
        self._closed = True
        for worker in tuple(self._running):
            worker.kill()  # whatever it decodes
        self._threads.shutdown(cancel_futures=True)
        for worker in tuple(self._running):
            worker.close()

    def _submit(self, items: Int64) -> tuple[Tensor, list[Future[int]]]:
        size, longest = self.spec.size, int(self.longest[items].max())
        frames = torch.zeros((len(items), longest, size, size, 3), dtype=torch.uint8, pin_memory=self.pinned)
        rows = zip(items.tolist(), frames.numpy(), strict=True)
        return frames, [self._threads.submit(self._read, item, row) for item, row in rows]

    def _read(self, item: int, row: Uint8) -> int:
        """Fill a row with the frames of a file; how many there are."""
        cached = self._cache.get(item)
        if cached is not None:
            row[: len(cached)] = cached
            return len(cached)
        if item in self.failed:
            return 0
        for _ in range(2):
            worker = self._workers.get()
            try:
                worker = worker or self._start()
                count = self._decode(worker, item, row)
            except GONE:  # it died, or took too long
                if worker is not None:
                    self._running.discard(worker)
                    worker.close()
                worker = None
            else:
                if count and row[:count].nbytes <= self._cache_left:
                    self._cache_left -= row[:count].nbytes
                    self._cache[item] = row[:count].copy()
                return count
            finally:
                self._workers.put(worker)
        self.failed[item] = "decoding it crashed or took too long"
        return 0

    def _decode(self, worker: ChildProcess, item: int, row: Uint8) -> int:
        worker.send_header({"path": str(self.paths[item]), "most": len(row)})
        answer = worker.receive_header()
        if "failed" in answer:
            self.failed[item] = get_text(answer, "failed")
            return 0
        count = get_int(answer, "frames", 1, len(row))
        worker.fill(row[:count].data.cast("B"))
        return count

    def _start(self) -> ChildProcess:
        if self._closed:
            raise TrainingError("the loader is closed")
        worker = ChildProcess(
            WORKER,
            json.dumps(asdict(self.spec)),
            environment={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            buffer=1 << 22,
        )
        worker.link.settimeout(TIMEOUT)
        try:
            worker.receive_header()
        except GONE:
            worker.close()
            raise TrainingError(f"the frame decoder does not start: python -m {WORKER}") from None
        self._running.add(worker)
        return worker
