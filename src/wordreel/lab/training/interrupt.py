"""Stop requests: Ctrl-C or SIGTERM ends a run after the current step, with its state saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TrainingInterrupted(KeyboardInterrupt):
    """A run was stopped by request after saving its state; `resume` continues from there."""


class StopRequest:
    """Whether a stop was requested. A second signal interrupts the program at once."""

    def __init__(self) -> None:
        self.requested = False

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the request; interrupt at the second one."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def stop_on_signal(enabled: bool = True) -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a stop request; a signal that is ignored stays ignored.

    Only the main thread can handle signals. Distributed training passes `enabled=False`: its processes would
    stop at different steps and then wait for each other for ever.
    """
    stop = StopRequest()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, stop.handle_signal) for number in handled}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
