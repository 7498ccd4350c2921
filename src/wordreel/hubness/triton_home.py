"""What the fused pass found, brought to main memory without the device waiting for it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np


class Home:
    """Results in main memory. Those of a chunk are copied while the next one is worked on."""

    def __init__(self, torch: Any, device: Any, items: int, sums: bool, width: int) -> None:
        self.arrays: list[Any] = [None, None, None, None]  # shift, total, values and floor
        if sums:
            self.arrays[:2] = np.empty(items), np.empty(items)
        if width:
            self.arrays[2:] = np.empty((items, width), np.float32), np.empty(items, np.float32)
        self.waiting: list[Any] = []
        self.stream = torch.cuda.Stream(device) if torch.device(device).type == "cuda" else None

    def expect(self, torch: Any, span: tuple[int, int], found: list[Any]) -> None:
        """Note what is being computed, and bring what was before it."""
        done = None if self.stream is None else torch.cuda.current_stream(self.stream.device).record_event()
        self.bring(torch)
        self.waiting = [(span, found, done)]

    def bring(self, torch: Any) -> None:
        for (start, stop), found, done in self.waiting:
            with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
                if self.stream is not None:
                    self.stream.wait_event(done)
                for array, tensor in zip(self.arrays, found, strict=True):
                    if array is not None:
                        torch.from_numpy(array[start:stop]).copy_(tensor)
        self.waiting = []
