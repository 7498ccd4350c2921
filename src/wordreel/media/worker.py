"""The program in the sandbox: receives a file descriptor, sends back raw frames and sound.

It is started by `wordreel.media.fence` with a socket as its standard input, confines itself, and serves
one command after another until the socket closes. Each file is decoded in a fork of its own: no
file can affect the decoding of the next, and all memory is freed at once. Whatever happens, only the fork
dies.
"""

from __future__ import annotations

# Everything that is ever used is imported here, before `confine`: after it no module can be opened.
import array  # noqa: F401 - recv_fds wants it
import gc
import math
import os
import signal
import socket
import sys
from dataclasses import asdict
from typing import Any, NoReturn

import av
import av.audio.codeccontext
import av.audio.fifo
import av.audio.resampler
import av.audio.stream
import av.codec.hwaccel
import av.subtitles.codeccontext
import av.subtitles.stream
import av.video.codeccontext
import av.video.reformatter
import av.video.stream

from wordreel.errors import MediaError
from wordreel.media.container import DecodeTask
from wordreel.media.cut import cut
from wordreel.media.decode import decode_quick_look, decode_windows
from wordreel.media.formats import Container
from wordreel.media.hardware import choose_device, confine_with_device, hwaccel
from wordreel.media.media_info import read_info
from wordreel.media.sandbox import confine, die_with_parent
from wordreel.media.types import AudioNeed, CutRequest, FrameNeed, Limits, Need
from wordreel.util.child_process import MessageLink, ProcessGone


def main() -> None:
    """Serve commands from standard input, a socket, until it closes."""
    link = MessageLink(socket.socket(fileno=0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    av.logging.set_level(None)
    if len(sys.argv) > 2:
        _serve_on_device(link, int(sys.argv[1]), sys.argv[2])
        return
    confine(int(sys.argv[1]))
    link.send_header({"is": "ready"})
    while True:
        data, descriptors, _, _ = socket.recv_fds(link.link, 1, 1)
        if not data:
            return
        child = os.fork()
        if child == 0:
            # PyAV's objects crash when the collector takes a ring apart; the fork's end frees them all.
            gc.disable()
            die_with_parent()
            _serve(link, descriptors[0], None)
        os.close(descriptors[0])
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status < 0:
            os.kill(os.getpid(), -status)  # the parent is to see how the file ended its decoder
        elif status:
            os._exit(status)


def _serve_on_device(link: MessageLink, memory_bytes: int, device: str) -> None:
    """Serve one command and leave: what a driver has opened does not survive a fork."""
    gc.disable()
    try:
        confine_with_device(memory_bytes, device)
    except MediaError as error:
        link.send_header({"is": "error", "class": "BrokenMedia", "reason": error.message})
        return
    link.send_header({"is": "ready"})
    data, descriptors, _, _ = socket.recv_fds(link.link, 1, 1)
    if data:
        _serve(link, descriptors[0], hwaccel(device))


def _serve(link: MessageLink, descriptor: int, device: Any) -> NoReturn:
    """Serve one command and leave; exit codes other than 0 end the worker too."""
    try:
        command = link.receive_header()
        error = _execute(command, descriptor, device, link.send_header)
        if error is not None:
            link.send_header({"is": "error", "class": error[0], "reason": error[1]})
    except ProcessGone:
        os._exit(2)
    except BaseException:
        os._exit(3)
    os._exit(0)


def _execute(command: dict[str, Any], descriptor: int, device: Any, send: Any) -> tuple[str, str] | None:
    limits = Limits(**command["limits"])
    task = DecodeTask(descriptor, command["size"], Container(**command["container"]), limits, device)
    try:
        if command["do"] == "probe":
            send({"is": "info", **asdict(read_info(task))})
            return None
        if command["do"] == "quick look":
            decode_quick_look(task, FrameNeed(**command["need"]), command["window"], send)
            return None
        if command["do"] == "cut":
            cut(task, CutRequest(**command["cut"]), send)
            return None
        start, stop = command["start"], math.inf if command["stop"] is None else command["stop"]
        if command["do"] == "choose device":
            chosen = choose_device(task, command["devices"], command["forced"], start, stop)
            send({"is": "device", "name": chosen})
            return None
        needs: list[Need] = [
            FrameNeed(**need) if "short_side" in need else AudioNeed(**need) for need in command["needs"]
        ]
        decode_windows(task, needs, command["window"], start, stop, send)
    except MediaError as error:
        return type(error).__name__, error.message
    except (av.error.MemoryError, MemoryError):
        gib = limits.memory_bytes / 2**30
        return "OverLimit", f"decoding needs more memory than the limit of {gib:.1f} GiB"
    except ProcessGone:
        raise
    except av.FFmpegError as error:
        return "BrokenMedia", f"decoding failed: {(error.strerror or str(error)).lower()}"
    except Exception as error:
        # An unforeseen error of the decoder is blamed on the file.
        return "BrokenMedia", f"decoding failed: {type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main()
