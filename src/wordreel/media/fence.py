"""Decode untrusted files in worker processes that can die."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from wordreel.errors import BrokenMedia, MediaError, NotMedia
from wordreel.media.formats import OpenFile, open_media
from wordreel.media.hardware import DEVICES, HwDevice, HwDevices, process_devices
from wordreel.media.types import (
    AudioNeed,
    CutReport,
    CutRequest,
    FrameNeed,
    Frames,
    Limits,
    MediaInfo,
    Need,
    Sound,
    StreamRequest,
    Watch,
    Window,
)
from wordreel.media.window_reader import read_windows, write_cut
from wordreel.media.worker_process import WorkerProcess
from wordreel.util.child_process import Header, ProtocolError, get_float, get_int, get_text

_IDLE = 4
"""Idle workers that wait for the next file."""


class Fence:
    """A pool of sandboxed decoding workers; every method may be called from several threads at once.

    A worker serves one call at a time and is reused afterwards. One that crashes, hangs, exceeds its memory
    or breaks the protocol is killed, and the caller gets a `MediaError` for the file.

    Args:
        limits: What a file may cost: pixels, seconds, bytes, memory and time.
        devices: Hardware decoders for large videos; if None, as `WORDREEL_HWACCEL` says.

    >>> with Fence() as fence:
    ...     fence.limits.pixels
    64000000
    """

    def __init__(self, limits: Limits = Limits(), devices: HwDevices | None = None) -> None:  # noqa: B008 - frozen
        self.limits = limits
        self._devices = process_devices() if devices is None else devices
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._closed = False

    def __enter__(self) -> Fence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all idle workers; a busy one ends with its call."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs, after decoding at least one frame or sample.

        Raises:
            MediaError: It is not media, is damaged, or exceeds the limits.
        """
        with self._file(path) as file, self._worker() as worker:
            worker.command(file.descriptor, {"do": "probe", **self._about(file)})
            return _info(worker.answer(), file)

    def stream(self, path: Path, needs: Sequence[Need], window: float = 60.0) -> Iterator[Window]:
        """Decode a file in one pass for several needs, in windows of `window` seconds.

        Parts line up with `needs`: None where the file has no such stream, empty where the stream has
        nothing in this window. A remainder shorter than a second joins the last window. The iterator
        may be closed at any time.
        """
        return self.run(path, StreamRequest(tuple(needs), window))

    def run(self, path: Path, request: StreamRequest) -> Iterator[Window]:
        """Yield the windows of a request, which may start late or stop early."""
        _check(request)
        return self._run(path, request)

    def quick_look(self, path: Path, need: FrameNeed, window: float = 60.0) -> Iterator[Window]:
        """Key frames alone, at most `need.rate` a second, in windows of `window` seconds.

        Each has the time at which it is displayed. Far cheaper than `stream`, and unevenly spaced: gaps are
        filled only where that is cheap. A picture is one frame at 0; the part is None where there is none.
        """
        # A sparse request of one window's length, because that is what a window may hold.
        request = StreamRequest((need,), window, 0.0, window, sparse=True)
        _check(request)
        return self._quick_look(path, request)

    def _quick_look(self, path: Path, request: StreamRequest) -> Iterator[Window]:
        with self._file(path) as file, self._worker() as worker:
            header = {"do": "quick look", "need": asdict(request.needs[0]), "window": request.window}
            worker.command(file.descriptor, {**header, **self._about(file)})
            yield from read_windows(worker, request, self.limits)

    def _run(self, path: Path, request: StreamRequest) -> Iterator[Window]:
        with self._file(path) as file:
            header = {
                "do": "stream",
                "needs": [asdict(need) for need in request.needs],
                "window": request.window,
                "start": request.start,
                "stop": request.stop,
                **self._about(file),
            }
            returned = 0
            device = self._choose_device(file, request)
            if device is not None:
                try:
                    with self._worker(device) as worker:
                        worker.command(file.descriptor, header)
                        for window in read_windows(worker, request, self.limits):
                            returned += 1
                            yield window
                    self._devices.record(device.name, worked=True)
                    return
                except MediaError:
                    # The file or the device is at fault. Software starts over, and shows which.
                    pass
            with self._worker() as worker:
                worker.command(file.descriptor, header)
                # Windows are the same however they are decoded: those that were returned are dropped.
                yield from islice(read_windows(worker, request, self.limits), returned, None)
            if device is not None:
                self._devices.record(device.name, worked=False)

    def _choose_device(self, file: OpenFile, request: StreamRequest) -> HwDevice | None:
        """Return the device that decodes a file faster than software would."""
        usable = self._devices.usable()
        if not usable or not any(isinstance(need, FrameNeed) for need in request.needs):
            return None
        header = {"do": "choose device", "devices": usable, "forced": self._devices.forced}
        span = {"start": request.start, "stop": request.stop}
        with self._worker() as worker:
            worker.command(file.descriptor, {**header, **span, **self._about(file)})
            name = get_text(worker.answer(), "name")
        return DEVICES[name] if name in usable else None

    def cut(self, path: Path, request: CutRequest, descriptor: int, watch: Watch = Watch()) -> CutReport:  # noqa: B008 - frozen
        """Write a moment of a file to another, open for writing, which `watch` may stop.

        Raises:
            MediaError: The file cannot be read, or has nothing there.
        """
        with self._file(path) as file, self._worker() as worker:
            worker.command(file.descriptor, {"do": "cut", "cut": asdict(request), **self._about(file)})
            return write_cut(worker, request, descriptor, watch)

    def _about(self, file: OpenFile) -> dict[str, Any]:
        return {"size": file.size, "container": asdict(file.container), "limits": asdict(self.limits)}

    def _file(self, path: Path) -> closing[OpenFile]:
        return closing(open_media(path, self.limits))

    @contextmanager
    def _worker(self, device: HwDevice | None = None) -> Iterator[WorkerProcess]:
        """Lease a worker. It returns to the pool only after a success or an error that it reported itself.

        One with a device serves one file, and ends with it.
        """
        worker = self._lease() if device is None else WorkerProcess(self.limits, device)
        healthy = False
        try:
            yield worker
            healthy = True
        except ProtocolError as error:
            raise BrokenMedia(f"the decoder misbehaved on this file: {error}") from error
        except MediaError:
            healthy = worker.reported_error
            raise
        finally:
            if healthy and device is None:
                self._release(worker)
            else:
                worker.close()

    def _lease(self) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise RuntimeError("this fence is closed; open a new one")
            while self._idle:
                worker = self._idle.pop()
                if worker.is_idle():
                    return worker
                worker.close()
        return WorkerProcess(self.limits)

    def _release(self, worker: WorkerProcess) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _IDLE and worker.is_idle():
                self._idle.append(worker)
                return
        worker.close()


def _check(request: StreamRequest) -> None:
    if not request.needs:
        raise ValueError("at least one need is required")
    if not 0.1 <= request.window <= 86400.0:
        raise ValueError(f"a window has 0.1 to 86400 seconds, not {request.window}")
    for need in request.needs:
        if isinstance(need, FrameNeed):
            if not 0 < need.rate <= 1000 or need.short_side < 1:
                raise ValueError(f"{need} cannot be served: rate and side must be above 0")
        elif not 1000 <= need.rate <= 384000:
            raise ValueError(f"{need} cannot be served: 1000 to 384000 samples a second")
        elif request.start or request.stop is not None:
            raise ValueError(f"{need} cannot be served in part: sound is decoded from beginning to end")


def _info(header: Header, file: OpenFile) -> MediaInfo:
    if header.get("is") != "info" or header.get("kind") not in ("video", "audio", "image"):
        raise ProtocolError("an answer that is not a description")
    return MediaInfo(
        kind=header["kind"],
        container=file.container.name,
        duration=get_float(header, "duration", 0.0, 1e9),
        width=get_int(header, "width", 0, 2**20),
        height=get_int(header, "height", 0, 2**20),
        rotation=get_int(header, "rotation", 0, 270),
        frame_rate=get_float(header, "frame_rate", 0.0, 1e9),
        video_codec=get_text(header, "video_codec", 40),
        audio_codec=get_text(header, "audio_codec", 40),
        sample_rate=get_int(header, "sample_rate", 0, 2**31),
        recorded=get_text(header, "recorded", 40),
    )


def probe(path: Path) -> MediaInfo:
    """Return a file's kind, size and codecs, like `Fence.probe` with a fence of its own.

    Args:
        path: A video, a sound or a picture.

    Raises:
        MediaError: It is not media, is damaged, or exceeds the limits.

    >>> import cv2, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "black.png"
    >>> _ = cv2.imwrite(str(path), np.zeros((20, 30, 3), np.uint8))
    >>> info = probe(path)
    >>> info.kind, info.width, info.height
    ('image', 30, 20)
    """
    with Fence() as fence:
        return fence.probe(path)


def frames(
    path: Path, rate: float = 1.0, short_side: int = 256, start: float | None = None, end: float | None = None
) -> Frames:
    """Return frames at `start + k / rate` until `end`, each the one displayed at its time.

    Args:
        path: A video or a picture.
        rate: Frames per second.
        short_side: The shorter side is scaled down to this many pixels.
        start: Seconds; the beginning if None.
        end: Seconds; the end of the file if None.

    Raises:
        MediaError: The file cannot be decoded; `NotMedia` if it has no pictures.

    >>> import cv2, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "black.png"
    >>> _ = cv2.imwrite(str(path), np.zeros((20, 30, 3), np.uint8))
    >>> frames(path).images.shape
    (1, 20, 30, 3)
    """
    request = StreamRequest((FrameNeed(rate, short_side),), 60.0, start or 0.0, end)
    with Fence() as fence:
        parts = [window.parts[0] for window in fence.run(path, request)]
    filled = [part for part in parts if isinstance(part, Frames) and len(part)]
    if not filled:
        if any(part is None for part in parts):
            raise NotMedia("there are no pictures in this file, only sound")
        return next(part for part in parts if isinstance(part, Frames))
    images = filled[0].images if len(filled) == 1 else np.concatenate([part.images for part in filled])
    return Frames(images, np.concatenate([part.times for part in filled]), 1.0 / rate)


def audio(path: Path, rate: int = 16000) -> Sound:
    """Decode all sound of a file, mono, from time 0.

    Args:
        path: A sound, or a video with sound.
        rate: Samples per second.

    Raises:
        MediaError: The file cannot be decoded; `NotMedia` if it has no sound.

    >>> import tempfile, wave
    >>> path = Path(tempfile.mkdtemp()) / "silence.wav"
    >>> with wave.open(str(path), "wb") as file:
    ...     file.setparams((1, 2, 16000, 0, "NONE", ""))
    ...     file.writeframes(bytes(2 * 16000))
    >>> audio(path).seconds
    1.0
    """
    with Fence() as fence:
        windows = list(fence.stream(path, [AudioNeed(rate)]))
    pieces = [part.samples for window in windows if isinstance(part := window.parts[0], Sound)]
    if not pieces:
        raise NotMedia("there is no sound in this file")
    return Sound(np.concatenate(pieces), rate)
