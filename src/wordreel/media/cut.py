"""Cut a moment out of a file: packets are copied where that can be done, else encoded. Runs in the worker."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable
from typing import Any

from wordreel.errors import BrokenMedia, NotMedia
from wordreel.media.container import video_stream
from wordreel.media.cut_picture import PictureCut
from wordreel.media.cut_request import CutRequest
from wordreel.media.cut_sound import SoundCut
from wordreel.media.decode import Heartbeat
from wordreel.media.decode_task import DecodeTask, is_single_gif, no_media_error

Send = Callable[..., None]
BLOCK = 1 << 18  # bytes of the new file in one message


def cut(task: DecodeTask, request: CutRequest, send: Send) -> None:
    """Send the bytes of the new file as `data` messages, then a `cut` that says what was done."""
    import av

    if task.container.picture or is_single_gif(task):
        raise NotMedia("a picture has no moments to cut")
    source = task.open()
    stream = video_stream(source)
    picture = None if stream is None else PictureCut.open(task, source, stream, request)
    sound = SoundCut.open(task, request, picture)
    if picture is None and sound is None:
        raise no_media_error(task, stream is not None)
    writer = MessageWriter(send)
    out = av.open(writer, "w", format=request.container, buffer_size=BLOCK)
    parts = [part.packets(out) for part in (picture, sound) if part is not None]
    heartbeat, written, last = Heartbeat(send), 0, 0.0
    for time, packet in heapq.merge(*parts, key=lambda timed: timed[0]):
        out.mux_one(packet)
        written += 1
        writer.reached = last = max(last, time)
        heartbeat(last)
    if not written:
        raise BrokenMedia("there is nothing to cut at this moment: the file ends before it")
    out.close()
    send(
        {
            "is": "cut",
            "start": request.start if picture is None else max(0.0, picture.start),
            "end": request.end if picture is None else max(0.0, picture.end),
            "picture": "none" if picture is None else "copied" if picture.copied else "encoded",
            "sound": "none" if sound is None else "copied" if sound.copied else "encoded",
        }
    )


class MessageWriter:
    """A file object whose bytes go to the parent, each piece with its position."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._position = self._size = 0
        self.reached = 0.0  # seconds of the clip that are written

    def write(self, data: Any) -> int:
        """Send bytes with their position."""
        self._send({"is": "data", "at": self._position, "reached": self.reached}, data)
        self._position += len(data)
        self._size = max(self._size, self._position)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seekable(self) -> bool:
        """Return True: the receiver writes a file."""
        return True
