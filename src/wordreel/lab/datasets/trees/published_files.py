"""The names of files in published feature trees, from `published_files.toml`."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

PUBLISHED: dict[str, Any] = tomllib.loads(
    (resources.files("wordreel.lab.datasets.trees") / "published_files.toml").read_text(encoding="utf-8")
)
"""Layout → what its tree reads from the table."""
