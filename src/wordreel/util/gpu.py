"""Whether there is a GPU, found out without importing torch where there is none."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path


def find_gpu() -> str | None:
    """`cuda` if torch can use a GPU; looks for a driver before it imports torch."""
    if not _has_driver() or find_spec("torch") is None:
        return None
    import torch  # type: ignore[import-not-found, unused-ignore]

    return "cuda" if torch.cuda.is_available() else None


def _has_driver() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None
