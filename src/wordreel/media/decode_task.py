"""The file a worker decodes, as it received it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wordreel.errors import BrokenMedia
from wordreel.media.container import open_container, refers_elsewhere
from wordreel.media.formats import GIF, MP4, Container
from wordreel.media.types import Limits


@dataclass(frozen=True)
class DecodeTask:
    """A file to decode: its descriptor, size and container, its limits, and the device for its video."""

    descriptor: int
    size: int
    container: Container
    limits: Limits
    hwaccel: Any = None  # PyAV's `HWAccel`; None decodes in software

    def open(self) -> Any:
        """Open the file by its demuxer."""
        return open_container(self.descriptor, self.size, self.container, self.limits)

    def open_video(self) -> Any:
        """Open the file to decode its video, on the device if there is one."""
        return open_container(self.descriptor, self.size, self.container, self.limits, self.hwaccel)


def is_single_gif(task: DecodeTask) -> bool:
    """Whether a GIF holds only one picture; more make it a video."""
    if task.container != GIF:
        return False
    packets = 0
    for packet in task.open().demux(video=0):
        packets += packet.size > 0
        if packets > 1:
            return False
    return True


def no_media_error(task: DecodeTask, video: bool) -> BrokenMedia:
    """Return the error for a file without a single frame or sample."""
    if task.container == MP4 and refers_elsewhere(task.descriptor, task.size):
        return BrokenMedia("its pictures and sound are in another file, which is not opened")
    if video:
        return BrokenMedia("truncated or damaged: no frame could be decoded")
    return BrokenMedia("no picture or sound in it could be decoded")
