"""Refuse to begin what the disk has no room for."""

from __future__ import annotations

import shutil
from pathlib import Path

from wordreel.errors import NextStep, WeightsError

SPARE_BYTES = 64 * 2**20


def check_space(folder: Path, needed: int, what: str) -> None:
    """Raise unless that many bytes fit into a folder, with some to spare. `what` begins the message."""
    free = shutil.disk_usage(folder).free
    if needed + SPARE_BYTES > free:
        raise WeightsError(
            f"{what} {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are left",
            NextStep("free some space or set WORDREEL_WEIGHTS to another folder"),
        )
