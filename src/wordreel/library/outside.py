"""Look into a file without adding it: what the experts make of it, and how it would be cut into clips."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordreel.errors import MediaError
from wordreel.experts.base import Expert
from wordreel.library.clips import cut
from wordreel.library.extract import Decoder, ExpertFailed, Panel, extract
from wordreel.library.study import SHOTS, shots_of
from wordreel.media.types import MediaInfo, Window
from wordreel.types import Clip, Track


@dataclass(frozen=True)
class Outside:
    """A studied file that is in no library. Its content is not named: it equals no other."""

    path: Path
    info: MediaInfo
    tracks: Mapping[str, Track]
    clips: tuple[Clip, ...]


def study_outside(
    path: Path,
    experts: Sequence[Expert],
    decoder: Decoder,
    on_window: Callable[[Window, float], None] | None = None,
) -> Outside:
    """What `add` would find in a file. `on_window` hears of each window decoded, and the file's length."""
    try:
        info = decoder.probe(path)

        def moved(window: Window) -> None:
            if on_window:
                on_window(window, info.duration)

        got = extract(decoder, path, Panel(experts), [expert.card.name for expert in experts], moved)
    except MediaError as error:
        raise type(error)(f"{path}: {error.message}") from error
    except ExpertFailed as error:
        raise MediaError(f"{path}: {error}") from error
    if info.kind != "image" and got.end > 0:
        info = replace(info, duration=got.end)  # what the file says of its length may be wrong
    tracks = {name: answer for name, answer in got.results.items() if isinstance(answer, Track)}
    cuts = cut(info, shots_of(tracks.get(SHOTS), info.duration))
    return Outside(path, info, tracks, tuple(Clip("", c.start, c.end, c.whole) for c in cuts))


def content_of(path: Path) -> str:
    """The hash that names a file's bytes in a library; empty for what is no plain file."""
    # Not to wait for the other end of a pipe, should it be one.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return hashlib.file_digest(file, "sha256").hexdigest()
