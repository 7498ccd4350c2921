"""One decoding worker as the parent sees it: started, given commands with a deadline, and killed."""

from __future__ import annotations

import os
import signal
import socket
import time
from typing import Any

from wordreel.errors import BrokenMedia, MediaError, NextStep, OverLimit
from wordreel.media.hw_devices import HwDevice
from wordreel.media.types import Limits
from wordreel.util import wire
from wordreel.util.child_process import ChildProcess

_START_SECONDS = 60.0
_SOCKET_BUFFER = 1 << 22
"""A few frames, so that the worker decodes on while the parent is busy."""
_ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
)


class WorkerProcess:
    """A subprocess and the socket to it. Not shared between threads.

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
        self._process = ChildProcess(
            *_command_line(limits, device),
            environment=environment,
            quiet=True,
            buffer=_SOCKET_BUFFER,
        )
        self._link = self._process.link
        self.reported_error = False
        """Whether the last command ended with the worker's own report: it has nothing more to send."""
        self._waited = 0.0
        self._reached = 0.0
        self._link.settimeout(_START_SECONDS)
        try:
            greeting = wire.receive(self._link)
            if greeting.get("is") == "error":
                raise _to_error(greeting)
            if greeting.get("is") != "ready":
                raise wire.ProtocolError("no greeting")
        except MediaError:
            self.kill()
            raise
        except (OSError, wire.ConnectionClosed, wire.ProtocolError) as error:
            self.kill()
            raise MediaError(
                "the decoding worker did not start",
                NextStep("run `python -m wordreel.media.worker` to see why"),
            ) from error

    def command(self, descriptor: int, header: dict[str, Any]) -> None:
        """Send a file descriptor and a command; the deadline starts."""
        self._waited = self._reached = 0.0
        self.reported_error = False
        self._link.settimeout(self._limits.wall_floor)
        try:
            socket.send_fds(self._link, [b"."], [descriptor])
            wire.send(self._link, header)
        except OSError as error:
            raise self._gone() from error

    def receive(self) -> dict[str, Any]:
        """The worker's next message other than progress; its errors are raised."""
        while True:
            header: dict[str, Any] = self._timed(lambda: wire.receive(self._link))
            kind = header.get("is")
            if kind == "pulse":
                reached = wire.get_float(header, "reached", -1.0, 1e9)
                self._reached = min(max(self._reached, reached), self._limits.seconds)
            elif kind == "error":
                self.reported_error = True
                raise _to_error(header)
            else:
                return header

    def fill(self, view: memoryview) -> None:
        """Read a payload."""
        self._timed(lambda: wire.fill(self._link, view))

    def _timed(self, read: Any) -> Any:
        """Run a read within what is left of the wall clock.

        Only time spent waiting counts, so a caller that pauses between windows does not use up the file's
        time; and every second of media received extends it.
        """
        allowed = self._limits.wall_floor + self._limits.wall_per_second * self._reached
        started = time.monotonic()
        self._link.settimeout(max(0.001, allowed - self._waited))
        try:
            return read()
        except TimeoutError as error:
            raise OverLimit(
                f"decoding took longer than {allowed:.0f} seconds and was stopped at"
                f" {self._reached:.0f} seconds of media"
            ) from error
        except (OSError, wire.ConnectionClosed) as error:
            raise self._gone() from error
        finally:
            self._waited += time.monotonic() - started

    def _gone(self) -> MediaError:
        code = self._process.exit_status(2.0)
        if code is None:
            return BrokenMedia("the decoder stopped answering on this file")
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = str(-code)
            return BrokenMedia(f"the decoder crashed on this file ({name})")
        return BrokenMedia("the decoder gave up on this file")

    def alive(self) -> bool:
        """Whether a waiting worker can be given another file: it runs, and has nothing more to say."""
        return self._process.is_idle()

    def kill(self) -> None:
        """End the process and the fork it decodes in, whatever they are doing."""
        self._process.close()


def _command_line(limits: Limits, device: HwDevice | None) -> list[str]:
    """The module that the process runs, and its arguments."""
    return ["wordreel.media.worker", str(limits.memory_bytes), *([device.name] if device else [])]


def _to_error(header: dict[str, Any]) -> MediaError:
    from wordreel import errors

    known = {"NotMedia": errors.NotMedia, "BrokenMedia": BrokenMedia, "OverLimit": OverLimit}
    return known.get(wire.get_text(header, "class"), BrokenMedia)(
        wire.get_text(header, "reason") or "unreadable"
    )
