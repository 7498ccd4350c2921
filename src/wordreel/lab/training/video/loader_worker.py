"""The program of a loader worker: messages say which files go where in the shared memory.

It is started by `wordreel.lab.training.video.loader` and confines itself as the decoding workers of
`wordreel.media` do: while it decodes a file, it can open nothing else.
"""

from __future__ import annotations

# Everything that is ever used is imported here, before `confine`: after it no module can be opened.
import gc
import json
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import av
import av.audio.codeccontext
import av.audio.stream
import av.subtitles.codeccontext
import av.subtitles.stream

from wordreel.errors import MediaError
from wordreel.lab.training.video.decode_frames import FrameSpec, Uint8, read_frames
from wordreel.lab.training.video.frame_memory import FrameMemory, FrameMemoryLayout
from wordreel.media.sandbox import confine
from wordreel.media.types import Limits
from wordreel.util.child_process import MessageLink, ProcessGone


def main() -> None:
    """Serve messages until the loader is gone."""
    descriptor, number = int(sys.argv[1]), int(sys.argv[2])
    facts = json.loads(sys.argv[3])
    layout, spec, limits = FrameMemoryLayout(**facts["layout"]), FrameSpec(**facts["spec"]), Limits()
    memory, link = FrameMemory(layout, descriptor), MessageLink(socket.socket(fileno=0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    av.logging.set_level(None)
    confine(layout.total + limits.memory_bytes)
    gc.disable()  # PyAV's objects crash when the collector takes a ring of them apart
    with suppress(ProcessGone):
        while True:
            task = link.receive()
            failed = _serve(memory, number, spec, limits, task)
            memory.current[number] = -1
            link.send({"batch": task["batch"], "failed": failed})


def _serve(
    memory: FrameMemory, number: int, spec: FrameSpec, limits: Limits, task: dict[str, Any]
) -> list[list[Any]]:
    """Fill rows of a slot; the items that could not be read, with the reason."""
    slot, failed = memory.slot(task["slot"], task["rows"], task["frames"]), []
    for row, item, path, most, offset in task["files"]:
        memory.current[number] = item
        count = int(memory.cached[item])
        if count:
            slot[row, :count] = memory.cache(offset, count)
            memory.counts[task["slot"], row] = count
            continue
        try:
            frames: Uint8 = read_frames(Path(path), spec, limits)[:most]
        except MediaError as error:
            memory.counts[task["slot"], row] = 0
            failed.append([item, error.message])
            continue
        count = len(frames)
        slot[row, :count] = frames
        memory.counts[task["slot"], row] = count
        if offset >= 0:
            memory.cache(offset, count)[:] = frames
            memory.cached[item] = count  # last: others may read the cache from here on
    return failed


if __name__ == "__main__":
    main()
