"""The program of a frame worker: paths come over the socket, and decoded frames go back.

It is started by `wordreel.lab.training.frames.frame_loader` and confines itself as the decoding workers of
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

import av
import av.audio.codeccontext
import av.audio.stream
import av.subtitles.codeccontext
import av.subtitles.stream

from wordreel.errors import MediaError
from wordreel.lab.training.frames.decode_frames import FrameSpec, read_frames
from wordreel.media.sandbox import confine
from wordreel.media.types import Limits
from wordreel.util.child_process import MessageLink, ProcessGone


def main() -> None:
    """Serve paths until the loader is gone."""
    spec, limits = FrameSpec(**json.loads(sys.argv[1])), Limits()
    link = MessageLink(socket.socket(fileno=0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    av.logging.set_level(None)
    confine(limits.memory_bytes)
    gc.disable()  # PyAV's objects crash when the collector takes a ring of them apart
    with suppress(ProcessGone):
        link.send_header({"ready": True})
        while True:
            task = link.receive_header()
            try:
                frames = read_frames(Path(task["path"]), spec, limits)[: task["most"]]
            except MediaError as error:
                link.send_header({"failed": error.message})
                continue
            link.send_header({"frames": len(frames)}, frames)


if __name__ == "__main__":
    main()
