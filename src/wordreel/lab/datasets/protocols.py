"""Evaluation protocols: the items, captions and rules behind a published figure.

Each is a small file in `protocols/`; to add one, add a file.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.types import Split


@dataclass(frozen=True)
class EvaluationProtocol:
    """What a figure is measured on, and how.

    `rule`: the queries are every caption ("all"), the first of each item ("one"), all of an item joined
    ("paragraph"), or pictures ("none"). `v2t`: a video's rank is that of its best caption among all captions
    ("ce"), or that of its caption group among all groups, each ranked by its best caption ("clip"); None if
    the protocol has no video-to-text direction. `folds`: figures are means over this many equal parts of the
    items.
    """

    name: str
    title: str
    dataset: str
    split: str
    rule: str
    t2v: bool
    recall: tuple[int, ...]
    v2t: str | None = None
    items: int | None = None  # as published; None if unknown
    captions: int | None = None
    limit: int | None = None  # captions per item, from the first
    modality: str = "video"
    folds: int | None = None
    papers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def names() -> list[str]:
    """Return the names of all protocols.

    >>> "msrvtt-1k-a" in names()
    True
    """
    return sorted(path.name[:-5] for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(name: str) -> EvaluationProtocol:
    """Load a protocol by name.

    Args:
        name: One of `names()`.

    Returns:
        The protocol.

    Raises:
        DatasetError: There is no such protocol; the error suggests close names.

    >>> load("msrvtt-full").items, load("msrvtt-full").rule
    (2990, 'all')
    """
    if name not in names():
        close = get_close_matches(name.lower(), names(), n=4, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names())}"
        raise DatasetError(f"there is no protocol {name!r}; {hint}")
    return parse(name, (_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> EvaluationProtocol:
    """Parse a protocol file."""
    try:
        fields = tomllib.loads(text)
        lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
        return EvaluationProtocol(name=name, **{**fields, **lists})
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise DatasetError(f"protocol {name}: {error}") from None


def deviations(protocol: EvaluationProtocol, split: Split) -> tuple[str, ...]:
    """Say how a split differs from what the protocol was published on.

    This is reported beside every figure.
    """
    captions = sum(len(item.captions) for item in split.items)
    counts = (("items", len(split.items), protocol.items), ("captions", captions, protocol.captions))
    return tuple(
        f"{count:,} {what} instead of {published:,}"
        for what, count, published in counts
        if published is not None and count != published
    )


def _folder() -> Any:
    return resources.files("wordreel.lab.datasets") / "protocols"
