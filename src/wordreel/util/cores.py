"""How many processor cores this process is allowed to run on."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores that the system grants this process: all of the machine where it does not say.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
