"""What this machine has: processor cores, and a GPU, found without importing torch where there is none."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path


def cores() -> int:
    """Return the cores that the system grants this process: all of the machine where it does not say.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_gpu() -> str | None:
    """Return `cuda` if torch can use a GPU; look for a driver before importing torch."""
    if not _has_driver() or find_spec("torch") is None:
        return None
    import torch  # type: ignore[import-not-found, unused-ignore]

    return "cuda" if torch.cuda.is_available() else None


def _has_driver() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None
