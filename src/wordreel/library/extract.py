"""One decoding pass over a file that feeds every expert, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from wordreel.errors import WeightsError
from wordreel.experts.base import Expert
from wordreel.library.spans import FrameSpans, SoundSpans
from wordreel.media.types import AudioNeed, Frames, MediaInfo, Need, Sound, Window
from wordreel.types import Absent, Track, Words

WINDOW = 60.0


class Decoder(Protocol):
    """What is asked of `wordreel.media.Fence`."""

    def probe(self, path: Path) -> MediaInfo: ...

    def stream(self, path: Path, needs: Sequence[Need], window: float = WINDOW) -> Iterator[Window]: ...


class ExpertFailed(Exception):
    """An expert could not deal with this file; the message is the reason the user will read."""


@dataclass(frozen=True)
class Extracted:
    """A track or Absent per expert, and where the media really ended (0 if nothing was decoded)."""

    results: dict[str, Track | Absent]
    end: float


class Panel:
    """The experts of one `add`, each called by one thread at a time unless it says it is `thread_safe`."""

    def __init__(self, experts: Sequence[Expert]) -> None:
        self.experts = {expert.card.name: expert for expert in experts}
        self._turns: dict[str, AbstractContextManager[object]] = {
            name: nullcontext() if getattr(expert, "thread_safe", False) else threading.Lock()
            for name, expert in self.experts.items()
        }

    def ask(self, name: str, media: Frames | Sound) -> Track | Absent:
        expert = self.experts[name]
        try:
            with self._turns[name]:
                answer = expert.extract(media)
            if isinstance(answer, Track):
                _check(answer, expert.card.dim)
            return answer
        except (MemoryError, WeightsError):
            raise  # not this file's fault: the next one would fail as well
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__  # one line, fit for a list
            raise ExpertFailed(f"expert {name}: {reason}") from error


def extract(
    decoder: Decoder, path: Path, panel: Panel, names: Sequence[str], on_window: Callable[[Window], None]
) -> Extracted:
    """Decode once, whatever the number of experts; experts that need the same share the same pictures."""
    cards = {name: panel.experts[name].card for name in names}
    needs: list[Need] = list(dict.fromkeys(card.need for card in cards.values()))
    spans = {
        name: SoundSpans(card.span) if isinstance(card.need, AudioNeed) else FrameSpans(card.span)
        for name, card in cards.items()
    }
    answers: dict[str, list[Track | Absent]] = {name: [] for name in names}
    missing: set[str] = set(names)  # no stream of the kind has been seen
    end = 0.0
    if needs:
        with closing(_generator(decoder.stream(path, needs, window=WINDOW))) as windows:
            for window in windows:
                on_window(window)
                end = max(end, window.end)
                for name, gather in spans.items():
                    part = window.parts[needs.index(cards[name].need)]
                    if part is not None:
                        missing.discard(name)
                        for media in gather.take(part, window.end):  # type: ignore[arg-type]
                            answers[name].append(panel.ask(name, media))
        for name, gather in spans.items():
            for media in gather.rest():
                answers[name].append(panel.ask(name, media))
    return Extracted(
        {n: _joined(answers[n], n in missing, isinstance(cards[n].need, AudioNeed)) for n in names}, end
    )


def _generator(windows: Iterator[Window]) -> Generator[Window, None, None]:
    """A generator even if the decoder gives a plain iterator, so that it can be closed early."""
    yield from windows


def _joined(answers: list[Track | Absent], missing: bool, sound: bool) -> Track | Absent:
    """The tracks of the spans as one; absent only if every span was."""
    tracks = [a for a in answers if isinstance(a, Track)]
    if tracks:
        return Track(
            np.concatenate([t.values for t in tracks]),
            np.concatenate([t.times for t in tracks]),
            tuple(_clean(w) for t in tracks for w in t.words),
        )
    if answers:
        return Absent("; ".join(dict.fromkeys(a.reason for a in answers if isinstance(a, Absent))))
    what = "sound" if sound else "picture"
    return Absent(f"no {what} stream" if missing else f"no {what} could be decoded")


def _clean(words: Words) -> Words:
    """Words as the catalogue can hold them: valid Unicode without NUL."""
    text = words.text.replace("\x00", " ").encode("utf-8", "replace").decode()
    return words if text == words.text else Words(text, words.start, words.end, words.score)


def _check(track: Track, dim: int) -> None:
    """Refuse values that would poison every search later: better one failed file than a broken library."""
    if track.dim != dim:
        raise ValueError(f"gave {track.dim} numbers per row instead of {dim}")
    if not np.isfinite(track.values).all():
        raise ValueError("gave values that are not finite numbers")
    starts, ends = track.times[:, 0], track.times[:, 1]
    if not np.isfinite(track.times).all() or (starts > ends).any() or (np.diff(starts) < 0).any():
        raise ValueError("gave times that are not in order")
    if not all(np.isfinite([w.start, w.end, w.score]).all() for w in track.words):
        raise ValueError("gave words without a time")
