"""The normalisations that a search can use, by name."""

from __future__ import annotations

from typing import Literal, get_args

SearchNorm = Literal["auto", "none", "gc", "csls", "is", "dis", "cent", "nnn", "sinkhorn"]
AUTO: SearchNorm = "auto"
SEARCHABLE: tuple[str, ...] = tuple(name for name in get_args(SearchNorm) if name != AUTO)
"""The methods that need neither other test queries nor a bank of videos, and can score a few candidates."""
