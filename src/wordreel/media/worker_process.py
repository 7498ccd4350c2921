"""One decoding worker as the parent sees it: started, given commands with a deadline, and killed."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any

from wordreel.errors import BrokenMedia, MediaError, NextStep, OverLimit
from wordreel.media.hardware import HwDevice
from wordreel.media.types import Limits
from wordreel.util.child_process import ChildProcess, Header, ProcessGone, ProtocolError, get_float, get_text

_START_SECONDS = 60.0
_SOCKET_BUFFER = 1 << 22
"""A few frames, so that the worker decodes on while the parent is busy."""
_ENVIRONMENT = (
    "PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT",
)  # fmt: skip


class WorkerProcess(ChildProcess):
    """A decoding worker. Not shared between threads.

    One with a `device` decodes a single file, on that device.

    Raises:
        MediaError: It did not start, or its device does not decode.
    """

    def __init__(self, limits: Limits, device: HwDevice | None = None) -> None:
        self._limits = limits
        passed = (*_ENVIRONMENT, *(device.environment if device else ()))
        environment = {key: os.environ[key] for key in passed if key in os.environ}
        # Few arenas and no thread pools: the address space is counted.
        environment |= {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        super().__init__(
            *_command_line(limits, device), environment=environment, quiet=True, buffer=_SOCKET_BUFFER
        )
        self.reported_error = False
        """Whether the last command ended with the worker's own report: it has nothing more to send."""
        self._waited = 0.0
        self._reached = 0.0
        self.link.settimeout(_START_SECONDS)
        try:
            greeting = self.receive_header()
            if greeting.get("is") == "error":
                raise _to_error(greeting)
            if greeting.get("is") != "ready":
                raise ProtocolError("no greeting")
        except MediaError:
            self.close()
            raise
        except (TimeoutError, ProcessGone, ProtocolError) as error:
            self.close()
            raise MediaError(
                "the decoding worker did not start",
                NextStep("run `python -m wordreel.media.worker` to see why"),
            ) from error

    def command(self, descriptor: int, header: Header) -> None:
        """Send a file descriptor and a command; the deadline starts."""
        self._waited = self._reached = 0.0
        self.reported_error = False
        self.link.settimeout(self._limits.wall_floor)
        try:
            socket.send_fds(self.link, [b"."], [descriptor])
            self.send_header(header)
        except (OSError, ProcessGone) as error:
            raise self._gone() from error

    def answer(self) -> Header:
        """Return the next message other than progress; raise the errors among them."""
        while True:
            header: Header = self._timed(self.receive_header)
            kind = header.get("is")
            if kind == "pulse":
                reached = get_float(header, "reached", -1.0, 1e9)
                self._reached = min(max(self._reached, reached), self._limits.seconds)
            elif kind == "error":
                self.reported_error = True
                raise _to_error(header)
            else:
                return header

    def payload(self, view: memoryview) -> None:
        """Read the payload of the last message."""
        self._timed(lambda: self.fill(view))

    def _timed(self, read: Any) -> Any:
        """Run a read within what is left of the wall clock.

        Only time spent waiting counts, so a caller that pauses between windows does not use up the file's
        time; and every second of media received extends it.
        """
        allowed = self._limits.wall_floor + self._limits.wall_per_second * self._reached
        started = time.monotonic()
        self.link.settimeout(max(0.001, allowed - self._waited))
        try:
            return read()
        except TimeoutError as error:
            raise OverLimit(
                f"decoding took longer than {allowed:.0f} seconds and was stopped at"
                f" {self._reached:.0f} seconds of media"
            ) from error
        except ProcessGone as error:
            raise self._gone() from error
        finally:
            self._waited += time.monotonic() - started

    def _gone(self) -> MediaError:
        code = self.exit_status(2.0)
        if code is None:
            return BrokenMedia("the decoder stopped answering on this file")
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            return BrokenMedia(f"the decoder crashed on this file ({name})")
        return BrokenMedia("the decoder gave up on this file")


def _command_line(limits: Limits, device: HwDevice | None) -> list[str]:
    """Return the module that the process runs, and its arguments."""
    return ["wordreel.media.worker", str(limits.memory_bytes), *([device.name] if device else [])]


def _to_error(header: Header) -> MediaError:
    from wordreel import errors

    known = {"NotMedia": errors.NotMedia, "BrokenMedia": BrokenMedia, "OverLimit": OverLimit}
    return known.get(get_text(header, "class"), BrokenMedia)(get_text(header, "reason") or "unreadable")
