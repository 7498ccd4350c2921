"""Build a split from ids and captions, by a caption rule; check the fields of untrusted JSON they come from.

A caption rule says which of an item's captions are queries: all, the first, or all joined to a paragraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.types import Caption, Item, Missing, Split

CaptionsById = dict[str, list[Caption]]

MAX_SECONDS = 1e9


def add_caption(
    captions: CaptionsById, item: str, text: object, where: str, start: object = None, end: object = None
) -> None:
    """Append a caption to an item's. A blank caption only makes the item known.

    >>> captions: CaptionsById = {}
    >>> add_caption(captions, "video1", " a man sings ", "list, line 1")
    >>> add_caption(captions, "video1", "", "list, line 2")
    >>> captions
    {'video1': [Caption(text='a man sings', start=None, end=None)]}
    """
    if not isinstance(text, str):
        raise DatasetError(f"{where}: the caption of {item!r} is {type(text).__name__}, not text")
    if not item:
        raise DatasetError(f"{where}: a caption without an id")
    own = captions.setdefault(item, [])
    if clean := text.strip():
        own.append(Caption(encodable(clean), *parse_span(start, end, where)))


def parse_span(start: object, end: object, where: str) -> tuple[float | None, float | None]:
    """Start and end in seconds, in order: some published annotations have them reversed."""
    first, last = parse_seconds(start, where), parse_seconds(end, where)
    if first is not None and last is not None and first > last:
        first, last = last, first
    return first, last


def parse_seconds(value: object, where: str) -> float | None:
    """Return a finite, non-negative number of seconds, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DatasetError(f"{where}: a time is {type(value).__name__}, not a number of seconds")
    if not 0 <= value < MAX_SECONDS:  # also false for NaN
        raise DatasetError(f"{where}: {value} is no time; times are seconds from the start")
    return float(value)


def encodable(text: str) -> str:
    """Return the text with lone surrogates replaced, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def build_split(
    dataset: str,
    split: str,
    ids: Iterable[str],
    captions: Mapping[str, Sequence[Caption]],
    source: Path,
    paths: Mapping[str, str] | None = None,
    missing: Iterable[Missing] = (),
) -> Split:
    """Return the items with their captions.

    Items without captions stay in the gallery, and `missing` says so.
    """
    items = tuple(
        Item(item, tuple(captions.get(item, ())), (paths or {}).get(item)) for item in dict.fromkeys(ids)
    )
    if not items:
        raise DatasetError(f"{source} has nothing for split {split!r} of {dataset}")
    bare = [item.id for item in items if not item.captions]
    if len(bare) == len(items):
        raise DatasetError(
            f"none of the {len(items)} items of {dataset} {split} has a caption in {source}; the first is "
            f"{bare[0]!r}. The list and the captions are not of one dataset"
        )
    notes = list(missing)
    if bare:
        examples = ", ".join(bare[:3] + ["…"] * bool(bare[3:]))
        notes.append(
            Missing(
                f"captions of {len(bare)} of {len(items)} items ({examples})",
                source,
                "they stay in the gallery as distractors and have no queries",
            )
        )
    return Split(dataset, split, items, tuple(notes))


def apply_rule(split: Split, rule: str, limit: int | None = None) -> Split:
    """Apply a caption rule to a split.

    Args:
        split: The items with all their captions.
        rule: "all", "one" (the first), "paragraph" (all joined to one) or "none" (no captions as queries).
        limit: Use only this many captions per item, from the first.

    Returns:
        The split with the captions that remain.

    Raises:
        DatasetError: There is no such rule.

    >>> from wordreel.lab.datasets.types import Item
    >>> film = Item("film", (Caption("a man sings", 0, 5), Caption("he bows", 5, 9)))
    >>> apply_rule(Split("mine", "test", (film,)), "paragraph").captions
    {'film': ['a man sings he bows']}
    """
    return replace(
        split,
        items=tuple(replace(item, captions=_apply(item.captions[:limit], rule)) for item in split.items),
    )


def _apply(captions: tuple[Caption, ...], rule: str) -> tuple[Caption, ...]:
    if rule in ("all", "none"):
        return captions
    if rule == "one":
        return captions[:1]
    if rule == "paragraph":
        return (Caption(" ".join(caption.text for caption in captions)),) if captions else ()
    raise DatasetError(f"there is no caption rule {rule!r}; there are all, one, paragraph and none")


def require_dict(value: object, where: object, what: str) -> dict[str, Any]:
    """Return the value, which must be a JSON object.

    >>> require_dict([1], "train.json", "the captions")
    Traceback (most recent call last):
    wordreel.errors.DatasetError: train.json: the captions must be a JSON object, not list
    """
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: {what} must be a JSON object, not {type(value).__name__}")
    return value


def require_list(value: object, where: object, what: str) -> list[Any]:
    """Return the value, which must be a list."""
    if not isinstance(value, list | tuple):
        raise DatasetError(f"{where}: {what} must be a list, not {type(value).__name__}")
    return list(value)


def require_field(entry: object, key: str, where: object) -> Any:
    """Return one field of a JSON object."""
    if not isinstance(entry, dict) or key not in entry:
        have = ", ".join(map(repr, list(entry)[:8])) if isinstance(entry, dict) else type(entry).__name__
        raise DatasetError(f"{where}: no field {key!r}; there is {have}")
    return entry[key]


def require_name(entry: object, key: str, where: object) -> str:
    """Return an id or a file name in a field of a JSON object."""
    value = require_field(entry, key, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DatasetError(f"{where}: {key!r} is no name: {str(value)[:60]!r}")
    return encodable(str(value).strip())
