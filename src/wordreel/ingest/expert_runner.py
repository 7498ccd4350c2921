"""Run experts on the media of files: each on one thread at a time, as many at once as there are cores."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from wordreel.errors import MediaError, WeightsError
from wordreel.experts.base import ChunkReader, Expert, IncrementalExpert
from wordreel.ingest.chunks import FrameChunker, FramePieces, Piece, SoundChunker
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.types import Absent, Track
from wordreel.util.machine import cores

Result = TypeVar("Result")


class ExpertFailed(MediaError):
    """An expert could not process this file; the message is the reason the user reads."""


class ExpertRunner:
    """Loaded experts by name, and the locks that let the lanes of several files share them."""

    def __init__(self, experts: Sequence[Expert]) -> None:
        self.experts = {expert.card.name: expert for expert in experts}
        self._locks = {name: threading.Lock() for name in self.experts}
        self._cores = threading.BoundedSemaphore(cores())

    def run(self, name: str, media: Frames | Sound) -> Track | Absent:
        """Return what an expert finds in media, validated."""
        return self.finish(name, lambda: self.experts[name].extract(media))

    def finish(self, name: str, work: Callable[[], Track | Absent]) -> Track | Absent:
        """Let an expert return its output, and validate that."""

        def checked() -> Track | Absent:
            output = work()
            if isinstance(output, Track):
                _validate(output, self.experts[name].card.dim)
            return output

        return self.call(name, checked)

    def call(self, name: str, work: Callable[[], Result]) -> Result:
        """Let an expert work; what goes wrong with the file is raised as `ExpertFailed`."""
        try:
            with self._locks[name], self._cores:
                return work()
        except (MemoryError, WeightsError):
            raise  # not this file's fault: the next one would fail as well
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__  # one line, fit for a list
            raise ExpertFailed(f"expert {name}: {reason}") from error


class ExpertLane:
    """One expert over one file, in a thread of its own: a piece is processed while the next is decoded.

    A lane holds the piece in work and one more, besides the one that is gathered; of sound, whose pieces are
    minutes long, the piece in work alone. `push` waits until there is room.
    """

    def __init__(self, runner: ExpertRunner, name: str) -> None:
        self.outputs: list[Track | Absent] = []
        self.has_stream = False
        self._runner, self._name = runner, name
        self._expert = runner.experts[name]
        span = self._expert.card.span
        self._chunker: FrameChunker | FramePieces | SoundChunker
        if isinstance(self._expert.card.need, AudioNeed):
            self._chunker = SoundChunker(span, self._expert.card.quiet)
        elif isinstance(self._expert, IncrementalExpert):
            self._chunker = FramePieces(span)
        else:
            self._chunker = FrameChunker(span)
        self._reader: ChunkReader | None = None
        self._pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(1 if isinstance(self._chunker, SoundChunker) else 2)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def push(self, part: Frames | Sound, reached: float) -> None:
        """Take the media of a window that ends at `reached`; raise what went wrong with those before."""
        self.has_stream = True
        for piece in self._chunker.push(part, reached):  # type: ignore[arg-type]
            self._submit(piece)
        self.check()

    def flush(self) -> None:
        """Take what is left of the last chunk; `outputs` is complete after `close`."""
        for piece in self._chunker.flush():
            self._submit(piece)

    def check(self) -> None:
        """Raise the error of the last piece, if there was one."""
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        """Drop the pieces that are not in work yet."""
        self._cancelled = True

    def close(self) -> None:
        """Wait for the pieces taken and end the thread."""
        if self._thread is not None:
            self._pieces.put(None)
            self._thread.join()
            self._thread = None

    def _submit(self, piece: Piece) -> None:
        self._room.acquire()
        self.check()
        if self._thread is None:
            # A daemon: an expert deep in a long chunk must not keep an interrupted program from ending.
            self._thread = threading.Thread(target=self._work, daemon=True, name=f"expert-{self._name}")
            self._thread.start()
        self._pieces.put(piece)

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            try:
                if self._error is None and not self._cancelled:
                    self._process(piece)
            except BaseException as error:
                self._error = error
            del piece  # its frames are not needed while the next are awaited
            self._room.release()

    def _process(self, piece: Piece) -> None:
        expert, media = self._expert, piece.media
        if isinstance(expert, IncrementalExpert):
            reader = self._reader = self._reader or expert.begin()
            if isinstance(media, Frames):
                self._runner.call(self._name, lambda: reader.push(media))
            if piece.complete:
                self._reader = None
                self.outputs.append(self._runner.finish(self._name, reader.finish))
        elif media is not None:
            self.outputs.append(self._runner.run(self._name, media))


def _validate(track: Track, dim: int) -> None:
    """Refuse values that would poison every later search: better one failed file than a broken library."""
    if track.dim != dim:
        raise ValueError(f"returned {track.dim} numbers per row instead of {dim}")
    if not np.isfinite(track.values).all():
        raise ValueError("returned values that are not finite")
    starts, ends = track.times[:, 0], track.times[:, 1]
    if not np.isfinite(track.times).all() or (starts > ends).any() or (np.diff(starts) < 0).any():
        raise ValueError("returned times that are not in order")
    if not all(np.isfinite([w.start, w.end, w.score]).all() for w in track.words):
        raise ValueError("returned words without a time")
