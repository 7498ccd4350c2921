"""Captions and lists of ids to measure a library with, from any file that the datasets room reads."""

from __future__ import annotations

from pathlib import Path

from wordreel.datasets import registry
from wordreel.datasets.addresses import file_of, read_ids

__all__ = ["file_of", "read_captions", "read_ids"]


def read_captions(address: str) -> dict[str, list[str]]:
    """Captions by file name, with or without its ending, from .json, FILE.json:key, .csv or .jsonl."""
    found: dict[str, list[str]] = {}
    for item in registry.read(address).items:
        name = Path(item.path).name if item.path else item.id
        found.setdefault(name, []).extend(caption.text for caption in item.captions)
    return found
