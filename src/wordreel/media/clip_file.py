"""A moment of a video as a file of its own."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from os import PathLike
from pathlib import Path

from wordreel.errors import DiskError, MediaError, NextStep
from wordreel.media.fence import Fence
from wordreel.media.types import CutReport, CutRequest, Limits, Watch
from wordreel.progress import ProgressCallback
from wordreel.util.atomic import sync_dir

CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".m4a": "mp4", ".mkv": "matroska", ".mka": "matroska"}
TOLERANCE = 0.5  # seconds
SLOWEST = 20.0  # seconds of encoding for each second of the clip
UNFINISHED = ".part"


def check_moment(start: float, end: float) -> None:
    """Refuse a moment that ends before it starts."""
    if not (math.isfinite(start) and math.isfinite(end)) or start < 0 or end <= start:
        raise MediaError(f"a moment begins before it ends, not at {start:g} and {end:g} seconds")


def cut_clip(
    video: str | PathLike[str],
    start: float,
    end: float,
    out: str | PathLike[str],
    *,
    tolerance: float = TOLERANCE,
    playable: bool = False,
    overwrite: bool = False,
    on_progress: ProgressCallback | None = None,
) -> CutReport:
    """Cut a moment out of a video or a sound into a file of its own; the original is only read.

    Pictures are copied without encoding if a key frame lies at most `tolerance` seconds before the moment:
    the clip then begins with that key frame, and ends at most a few frames late. Otherwise they are encoded
    as H.264. Sound is copied where the new file can hold it.

    Args:
        video: A video or a sound.
        start: Seconds.
        end: Seconds.
        out: The new file: .mp4, .m4v, .m4a, .mkv or .mka.
        tolerance: How many seconds early the clip may begin so that nothing is encoded; 0 is exact.
        playable: Encode whatever browsers might not play.
        overwrite: Replace `out` if it exists.
        on_progress: Called with the seconds written.

    Returns:
        Where the clip begins and ends, and what was copied and what encoded.

    Raises:
        MediaError: The file cannot be read, the moment is not in it, or `out` cannot be written.
    """
    source, target = Path(video).expanduser(), Path(out).expanduser()
    check_moment(start, end)
    container = CONTAINERS.get(target.suffix.lower())
    if container is None:
        raise MediaError(f"{target.name!r} must end with {', '.join(CONTAINERS)}")
    if target.exists() and (not overwrite or target.samefile(source)):
        same = source.exists() and target.samefile(source)
        step = NextStep("choose another name" if same else "choose another name, or let it be replaced")
        raise MediaError(f"{target} is the video itself" if same else f"{target} exists already", step)
    request = CutRequest(start, end, tolerance, container, playable)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}{UNFINISHED}")
    try:
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with Fence(Limits(wall_per_second=SLOWEST)) as fence:
                report = fence.cut(source, request, descriptor, Watch(on_progress=on_progress))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        unfinished.replace(target)
        sync_dir(target.parent)
    except OSError as error:
        raise DiskError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return report
