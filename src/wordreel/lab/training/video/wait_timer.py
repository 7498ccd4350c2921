"""How long the device waits for data: the gaps between the end of a step and the start of the next one."""

from __future__ import annotations

import time
from typing import Any

import torch


class WaitTimer:
    """Time stamps of steps, on the device's own clock where it is a GPU (the host may run ahead of it).

    `start` is called when a batch is on the device, `end` after a step. Nothing is synchronised before
    `figures`.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._reset()

    def _reset(self) -> None:
        self._starts: list[Any] = []
        self._ends: list[Any] = []
        self._clips = 0
        self._began = time.perf_counter()
        self._first = 0.0

    def begin(self) -> None:
        """An epoch begins: from here to its first step the device waits."""
        self._reset()

    def start(self, clips: int) -> None:
        if not self._starts:
            self._first = time.perf_counter() - self._began
        self._clips += clips
        self._starts.append(self._stamp())

    def end(self) -> None:
        self._ends.append(self._stamp())

    def figures(self) -> dict[str, float]:
        """Clips per second, and the share of time that the device waited for data."""
        if not self._ends:
            return {}
        if self._cuda:
            self._ends[-1].synchronize()
        gaps = [self._between(end, start) for end, start in zip(self._ends, self._starts[1:], strict=False)]
        waited = self._first + sum(gaps)
        whole = self._first + self._between(self._starts[0], self._ends[-1])
        return {
            "clips_per_second": round(self._clips / max(whole, 1e-9), 2),
            "waiting_share": round(waited / max(whole, 1e-9), 4),
        }

    def _stamp(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _between(self, first: Any, second: Any) -> float:
        """Seconds."""
        return float(first.elapsed_time(second) / 1000 if self._cuda else second - first)
