"""The field's protocols: which items, which captions and which rules a published figure is about.

Each is a small file in `protocols/`; to add one, add a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from typing import Any

from wordreel.datasets.types import Split
from wordreel.errors import DatasetError

RULES = ("all", "one", "paragraph", "none")
V2T = ("ce", "clip")
TIES = ("average",)


@dataclass(frozen=True)
class Protocol:
    """What a figure is measured on, and how.

    `rule`: every caption is a query ("all"), the first one is ("one"), all of them joined are ("paragraph"),
    or pictures are the queries ("none"). `v2t`: a video's rank is that of its best caption among all captions
    ("ce"), or that of its group of captions, each group by its best, among all groups ("clip"); None where a
    protocol has no such direction. `ties`: equal scores share the mean of their places.
    """

    name: str
    title: str
    dataset: str
    split: str
    rule: str
    t2v: bool
    v2t: str | None
    recall: tuple[int, ...]
    ties: str = "average"
    items: int | None = None  # as published; None where no figure is known
    captions: int | None = None
    limit: int | None = None  # captions of one item, from the first
    papers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def names() -> list[str]:
    """The names of all protocols.

    >>> "msrvtt-1k-a" in names()
    True
    """
    return sorted(path.name[:-5] for path in _folder().iterdir() if path.name.endswith(".toml"))


def load(name: str) -> Protocol:
    """A protocol by its name.

    >>> load("msrvtt-full").items, load("msrvtt-full").rule
    (2990, 'all')
    """
    if name not in names():
        close = get_close_matches(name.lower(), names(), n=4, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names())}"
        raise DatasetError(f"there is no protocol {name!r}; {hint}")
    return parse(name, (_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Protocol:
    """A protocol from its file, every field checked."""
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"protocol {name}: {error}") from None

    def taken(key: str, right: Callable[[Any], bool], default: Any = ...) -> Any:
        if key not in fields and default is not ...:
            return default
        if key not in fields or not right(value := fields.pop(key)):
            raise DatasetError(f"protocol {name}: {key!r} is missing or not what it must be")
        return value

    found = Protocol(
        name=name,
        title=taken("title", _is_text),
        dataset=taken("dataset", _is_text),
        split=taken("split", _is_text),
        rule=taken("rule", lambda v: v in RULES),
        t2v=taken("t2v", lambda v: isinstance(v, bool)),
        v2t=taken("v2t", lambda v: v in V2T, None),
        recall=tuple(taken("recall", lambda v: _is_list(v, _is_count) and v == sorted(set(v)))),
        ties=taken("ties", lambda v: v in TIES, "average"),
        items=taken("items", _is_count, None),
        captions=taken("captions", _is_count, None),
        limit=taken("limit", _is_count, None),
        papers=tuple(taken("papers", lambda v: _is_list(v, _is_text))),
        notes=tuple(taken("notes", lambda v: _is_list(v, _is_text), [])),
    )
    if fields:
        raise DatasetError(f"protocol {name}: unknown {', '.join(map(repr, fields))}")
    return found


def deviations(protocol: Protocol, split: Split) -> tuple[str, ...]:
    """How a split differs from what the protocol was published on; to be said beside every figure."""
    captions = sum(len(item.captions) for item in split.items)
    pairs = (("items", len(split.items), protocol.items), ("captions", captions, protocol.captions))
    return tuple(
        f"{have:,} {what} instead of {due:,}" for what, have, due in pairs if due is not None and have != due
    )


def _folder() -> Any:
    return resources.files("wordreel.datasets") / "protocols"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_list(value: object, right: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(map(right, value))
