"""Decoding strangers' files in workers that can die."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from wordreel.errors import BrokenMedia, MediaError
from wordreel.media import wire
from wordreel.media.files import OpenFile, open_media
from wordreel.media.gather import Order, gather
from wordreel.media.process import Worker
from wordreel.media.types import FrameNeed, Limits, MediaInfo, Need, Window

_IDLE = 4
"""Workers kept waiting for the next file."""


class Fence:
    """Owns decoding workers; every method may be called from several threads at once.

    A worker serves one call at a time and is used again after it. One that crashes, hangs, outgrows its
    memory or talks nonsense is killed, and the file it was working on gets a precise `MediaError`.
    """

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self.limits = limits
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._closed = False

    def __enter__(self) -> Fence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all waiting workers; one still in a call ends with that call."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()

    def probe(self, path: Path) -> MediaInfo:
        """What the file is. At least one frame or sample of it was really decoded."""
        with self._file(path) as file, self._worker() as worker:
            worker.command(file.descriptor, {"do": "probe", **self._about(file)})
            return _info(worker.receive(), file)

    def stream(self, path: Path, needs: Sequence[Need], window: float = 60.0) -> Iterator[Window]:
        """One pass over a file for several needs, in windows of `window` seconds.

        Parts line up with `needs`: None where the file has no such stream, empty where the stream has
        nothing in this window. A remainder shorter than a second joins the last window. The iterator
        may be dropped at any time.
        """
        return self.run(path, Order(tuple(needs), window))

    def run(self, path: Path, order: Order) -> Iterator[Window]:
        """The windows of an order, which may start late, stop early or be sparse."""
        _check(order)
        return self._run(path, order)

    def _run(self, path: Path, order: Order) -> Iterator[Window]:
        with self._file(path) as file, self._worker() as worker:
            header = {
                "do": "stream",
                "needs": [asdict(need) for need in order.needs],
                "window": order.window,
                "start": order.start,
                "stop": order.stop,
                "sparse": order.sparse,
            }
            worker.command(file.descriptor, {**header, **self._about(file)})
            yield from gather(worker, order, self.limits)

    def _about(self, file: OpenFile) -> dict[str, Any]:
        return {"size": file.size, "container": asdict(file.container), "limits": asdict(self.limits)}

    @contextmanager
    def _file(self, path: Path) -> Iterator[OpenFile]:
        file = open_media(path, self.limits)
        try:
            yield file
        finally:
            file.close()

    @contextmanager
    def _worker(self) -> Iterator[Worker]:
        """Lend a worker. It comes back only if the call went well, or failed in an orderly way."""
        worker = self._lease()
        healthy = False
        try:
            yield worker
            healthy = True
        except wire.Garbled as error:
            raise BrokenMedia(f"the decoder was subverted or confused by this file: {error}") from error
        except MediaError as error:
            healthy = error.__cause__ is None
            raise
        finally:
            if healthy:
                self._give_back(worker)
            else:
                worker.kill()

    def _lease(self) -> Worker:
        with self._lock:
            if self._closed:
                raise RuntimeError("this fence is closed; open a new one")
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():
                    return worker
                worker.kill()
        return Worker(self.limits)

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE and worker.alive():
                self._idle.append(worker)
                return
        worker.kill()


def _check(order: Order) -> None:
    if not order.needs:
        raise ValueError("at least one need is wanted")
    if not 0.1 <= order.window <= 86400.0:
        raise ValueError(f"a window has 0.1 to 86400 seconds, not {order.window}")
    for need in order.needs:
        if isinstance(need, FrameNeed):
            if not 0 < need.rate <= 1000 or need.short_side < 1:
                raise ValueError(f"{need} cannot be served: rate and side must be above 0")
        elif not 1000 <= need.rate <= 384000:
            raise ValueError(f"{need} cannot be served: 1000 to 384000 samples a second")


def _info(header: dict[str, Any], file: OpenFile) -> MediaInfo:
    if header.get("is") != "info" or header.get("kind") not in ("video", "audio", "image"):
        raise wire.Garbled("an answer that is no description")
    return MediaInfo(
        kind=header["kind"],
        container=file.container.name,
        duration=wire.real(header, "duration", 0.0, 1e9),
        width=wire.whole(header, "width", 0, 2**20),
        height=wire.whole(header, "height", 0, 2**20),
        rotation=wire.whole(header, "rotation", 0, 270),
        frame_rate=wire.real(header, "frame_rate", 0.0, 1e9),
        video_codec=wire.words(header, "video_codec", 40),
        audio_codec=wire.words(header, "audio_codec", 40),
        sample_rate=wire.whole(header, "sample_rate", 0, 2**31),
    )
