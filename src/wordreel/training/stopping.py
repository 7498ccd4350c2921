"""Ctrl-C, or a scheduler's SIGTERM: a run ends after its step, with its state on the disk."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A run was asked to end and has kept its state; resumed, it goes on from there."""


class Wish:
    """Whether somebody asked for the end. Asked twice, the program is interrupted at once."""

    def __init__(self) -> None:
        self.asked = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stoppable(alone: bool = True) -> Iterator[Wish]:
    """Signals become a wish while this lasts; one that is ignored, as in the background, stays so.

    Several processes (`alone` false) would stop at different steps and wait for each other for ever, and only
    a program's main thread hears signals: there everything stays as it is.
    """
    wish = Wish()
    if not alone or threading.current_thread() is not threading.main_thread():
        yield wish
        return
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, wish.hear) for number in heard}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
