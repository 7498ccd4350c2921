"""Run experts on the media of files: each on one thread at a time, as many at once as there are cores.

Decoded media are cut into chunks of the length an expert asks for, whatever windows the decoder returns.
Chunk k is `[k * span, (k + 1) * span)`. The decoder merges a remainder shorter than a second into its last
window, because no expert can do much with it; chunks do the same. So when a window ends exactly where a chunk
does, either more than a second follows or nothing does, and the chunk is complete.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import MediaError, WeightsError
from wordreel.experts.base import ChunkReader, Expert, IncrementalExpert
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.media.window_reader import page_zeros
from wordreel.types import Absent, Track
from wordreel.util.machine import cores

MIN_REMAINDER = 1.0
PAUSE = 0.4  # seconds between two words
ROUNDING = 1e-6


class _Edges:
    """Where the next chunk ends."""

    def __init__(self, span: float) -> None:
        self._span = span
        self._number = 1

    @property
    def next(self) -> float:
        """The first edge that is not certain yet."""
        return self._number * self._span

    def passed(self, reached: float) -> list[tuple[float, bool]]:
        """Return edges that are now certain, and for each whether everything buffered lies before it."""
        edges: list[tuple[float, bool]] = []
        while True:
            edge = self._number * self._span
            exact = abs(reached - edge) < ROUNDING
            if not exact and reached < edge + MIN_REMAINDER:
                return edges
            edges.append((edge, exact))
            self._number += 1


@dataclass(frozen=True)
class Piece:
    """Media of a chunk, which is `complete` with it."""

    media: Frames | Sound | None
    complete: bool = True


class FramePieces:
    """Groups frames with `k * span <= time < (k + 1) * span`, each chunk in as many pieces as windows.

    Nothing is held back but what may still belong to either of two chunks.
    """

    def __init__(self, span: float) -> None:
        self._edges = _Edges(span)
        self._held: list[Frames] = []  # at or after the edge, which is not certain yet
        self._open = False  # whether a piece of the current chunk was returned

    def push(self, frames: Frames, reached: float) -> list[Piece]:
        """Add the frames of a window that ends at `reached`; return what is certain to belong to a chunk."""
        self._held.append(frames)
        done: list[Piece] = []
        for edge, everything in self._edges.passed(reached):
            done += self.flush() if everything else self._take(edge, complete=True)
        return done + self._take(self._edges.next, complete=False)

    def flush(self) -> list[Piece]:
        """Return what is buffered, which completes the last chunk."""
        return self._take(np.inf, complete=True)

    def _take(self, edge: float, complete: bool) -> list[Piece]:
        pieces: list[Piece] = []
        held, self._held = self._held, []
        for frames in held:
            at = int(np.searchsorted(frames.times, edge - ROUNDING))
            if at:
                pieces.append(Piece(Frames(frames.images[:at], frames.times[:at], frames.period), False))
            if at < len(frames):
                self._held.append(Frames(frames.images[at:], frames.times[at:], frames.period))
        if complete and (pieces or self._open):
            pieces = [*pieces[:-1], Piece(pieces[-1].media if pieces else None)]
        if pieces:
            self._open = not pieces[-1].complete
        return pieces


class FrameChunker:
    """The chunks of `FramePieces`, each whole."""

    def __init__(self, span: float) -> None:
        self._pieces = FramePieces(span)
        self._parts: list[Frames] = []

    def push(self, frames: Frames, reached: float) -> list[Piece]:
        """Add the frames of a window that ends at `reached`; return the chunks that are now complete."""
        return self._completed(self._pieces.push(frames, reached))

    def flush(self) -> list[Piece]:
        """Return what is buffered since the last complete chunk."""
        return self._completed(self._pieces.flush())

    def _completed(self, pieces: Sequence[Piece]) -> list[Piece]:
        chunks: list[Piece] = []
        for piece in pieces:
            if isinstance(piece.media, Frames):
                self._parts.append(piece.media)
            if piece.complete:
                times, period = np.concatenate([part.times for part in self._parts]), self._parts[0].period
                chunks.append(Piece(Frames(_join_frames(self._parts), times, period)))
        return chunks


class SoundChunker:
    """Groups samples of `[k * span, (k + 1) * span)`; a gap between windows becomes silence.

    With `quiet`, a chunk ends at the quietest moment of so many seconds before that, where no word is cut.
    """

    def __init__(self, span: float, quiet: float = 0.0) -> None:
        self._edges = _Edges(span)
        self._span, self._quiet = span, quiet
        self._samples: NDArray[np.float32] = np.zeros(0, np.float32)  # with room for more
        self._buffered = 0
        self._rate = 0
        self._next = 0  # index, from time 0, of the first buffered sample

    def push(self, sound: Sound, reached: float) -> list[Piece]:
        """Add the samples of a window that ends at `reached`; return the chunks that are now complete."""
        if len(sound.samples):
            first = round(sound.start * sound.rate)
            if not self._rate:
                self._rate, self._next = sound.rate, first
            gap = first - self._next - self._buffered
            self._append(max(0, gap), sound.samples)  # without the gap later sound would come too early
        done: list[Piece] = []
        for edge, everything in self._edges.passed(reached):
            size = self._buffered if everything else round(edge * self._rate) - self._next
            done += self._cut(self._before_a_pause(size))
        return done

    def flush(self) -> list[Piece]:
        """Return what is buffered since the last complete chunk."""
        return self._cut(self._buffered)

    def _before_a_pause(self, size: int) -> int:
        """Where to cut, instead of after `size` samples."""
        size = max(0, min(size, self._buffered))
        first = max(0, size - int(self._quiet * self._rate))
        return first + quietest(self._samples[first:size], self._rate) if self._quiet else size

    def _append(self, gap: int, samples: NDArray[np.float32]) -> None:
        """Add zeros, then samples, to what is buffered."""
        first, end = self._buffered + gap, self._buffered + gap + len(samples)
        if end > len(self._samples):
            # A whole chunk at once: what is not filled costs nothing, and no sample is held twice.
            room = page_zeros([max(end, int((self._span + 60.0) * self._rate))], np.float32)
            room[: self._buffered] = self._samples[: self._buffered]
            self._samples = room
        self._samples[first:end] = samples
        self._buffered = end

    def _cut(self, size: int) -> list[Piece]:
        size = min(size, self._buffered)
        if size <= 0:
            return []
        chunk, rest = self._samples[:size], self._samples[size : self._buffered]
        start = self._next / self._rate
        self._next += size
        self._samples, self._buffered = np.zeros(0, np.float32), 0
        if len(rest):
            self._append(0, rest)
        return [Piece(Sound(chunk, self._rate, start))]


def quietest(samples: NDArray[np.float32], rate: int) -> int:
    """Return the middle of the `PAUSE` with the least energy, the last of several; the end of short sound.

    >>> sound = np.ones(100, np.float32)
    >>> sound[40:60] = 0.1
    >>> quietest(sound, rate=50)
    50
    """
    length = int(PAUSE * rate)
    if len(samples) <= length:
        return len(samples)
    energy = np.cumsum(np.append(0.0, samples.astype(np.float64) ** 2))
    backwards = (energy[length:] - energy[:-length])[::-1]
    return len(samples) - length + length // 2 - int(backwards.argmin())


def _join_frames(parts: list[Frames]) -> NDArray[np.uint8]:
    """All images in one array; `parts` is emptied on the way, so that no frame is held twice."""
    if len(parts) == 1:
        return parts.pop().images
    images = page_zeros((sum(map(len, parts)), *parts[0].images.shape[1:]), np.uint8)
    filled = 0
    while parts:
        part = parts.pop(0)
        images[filled : filled + len(part)] = part.images
        filled += len(part)
    return images


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
