"""Worker processes: the one way in which wordreel starts, asks, cancels and ends a process of its own.

The decoders of the fence, the server's jobs, local executors and loaders of frames are such processes: a
module that is run with a socket as its standard input. Messages are framed by `wordreel.util.wire`. A child
ends with its parent, even if that is killed: it watches the socket (`parent_link`), or reads it until it
closes; forks in a sandbox ask the kernel (`media.sandbox.die_with_parent`).
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from wordreel.util import wire

LONGEST_MESSAGE = 2**31  # bytes, between processes that trust each other


class ProcessGone(Exception):
    """The process at the other end has ended."""


class MessageLink:
    """A socket that carries messages between two processes that trust each other."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def send(self, message: Any) -> None:
        """Send a JSON value."""
        self.send_bytes(json.dumps(message).encode())

    def receive(self, seconds: float | None = None) -> Any:
        """Return the next JSON value.

        Raises:
            TimeoutError: There is none within so many seconds.
            ProcessGone: The other end is closed.
        """
        return json.loads(self.receive_bytes(seconds))

    def send_bytes(self, content: bytes) -> None:
        try:
            wire.send(self.link, {}, content)
        except OSError as error:
            raise ProcessGone(str(error)) from error

    def receive_bytes(self, seconds: float | None = None) -> bytearray:
        self.link.settimeout(seconds)
        try:
            content = bytearray(wire.get_int(wire.receive(self.link), "bytes", 0, LONGEST_MESSAGE))
            wire.fill(self.link, memoryview(content))
        except TimeoutError:
            raise
        except (OSError, wire.ConnectionClosed, wire.ProtocolError) as error:
            raise ProcessGone(str(error)) from error
        finally:
            with suppress(OSError):
                self.link.settimeout(None)
        return content


class ChildProcess(MessageLink):
    """A module that runs in a process of its own.

    Args:
        module: What `python -m` runs.
        arguments: Its arguments.
        environment: All of its environment; this process's by default.
        quiet: Drop what it prints.
        buffer: Bytes of each direction that are sent before the other end reads.
        descriptors: Open files that it inherits.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        quiet: bool = False,
        buffer: int = 0,
        descriptors: Iterable[int] = (),
    ) -> None:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs) if buffer else ():
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        output = subprocess.DEVNULL if quiet else None
        try:
            self._process = subprocess.Popen(
                # -P: a folder of videos may hold a file named av.py, and must not be imported from.
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                env=environment,
                pass_fds=tuple(descriptors),
                start_new_session=True,  # Ctrl-C is for the process that started this one
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        super().__init__(ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_idle(self) -> bool:
        """Whether it runs, and has nothing more to say."""
        readable, _, _ = select.select([self.link], [], [], 0.0)
        return not readable and self._process.poll() is None

    def exit_status(self, seconds: float) -> int | None:
        """How it ended, negative for a signal; None if it still runs after so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def cancel(self, seconds: float) -> None:
        """Ask it to stop, and end it after so many seconds."""
        self._process.terminate()
        if self.exit_status(seconds) is None:
            self.kill()

    def kill(self) -> None:
        """End it and the processes that it started in its session, whatever they are doing.

        What it sent before can still be received.
        """
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, and the link."""
        self.kill()
        self.link.close()


def parent_link() -> MessageLink:
    """In a child: the link to its parent. The process ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = socket.socket(fileno=os.dup(0))
    threading.Thread(target=_exit_with_parent, args=(link.fileno(),), name="parent", daemon=True).start()
    return MessageLink(link)


def _exit_with_parent(descriptor: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLHUP | select.POLLRDHUP)
    ended.poll()
    os._exit(3)
