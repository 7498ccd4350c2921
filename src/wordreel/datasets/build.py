"""From ids and captions to a split, with nothing dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wordreel.datasets.types import Caption, Item, Missing, Split
from wordreel.errors import DatasetError

Captions = dict[str, list[Caption]]

LATEST = 1e9  # seconds


def add(
    captions: Captions, name: str, text: object, where: str, start: object = None, end: object = None
) -> None:
    """Add a caption to an item's. Blank ones are not captions; the item stays known without them.

    >>> found: Captions = {}
    >>> add(found, "video1", " a man sings ", "list, line 1")
    >>> add(found, "video1", "", "list, line 2")
    >>> found
    {'video1': [Caption(text='a man sings', start=None, end=None)]}
    """
    if not isinstance(text, str):
        raise DatasetError(f"{where}: the caption of {name!r} is {type(text).__name__}, not text")
    if not name:
        raise DatasetError(f"{where}: a caption without an id")
    own = captions.setdefault(name, [])
    if clean := text.strip():
        own.append(Caption(encodable(clean), *span(start, end, where)))


def span(start: object, end: object, where: str) -> tuple[float | None, float | None]:
    """Seconds, in order; some published annotators have them the wrong way round."""
    first, last = seconds(start, where), seconds(end, where)
    if first is not None and last is not None and first > last:
        first, last = last, first
    return first, last


def seconds(value: object, where: str) -> float | None:
    """A finite time that is not negative."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DatasetError(f"{where}: a time is {type(value).__name__}, not a number of seconds")
    if not 0 <= value < LATEST:  # NaN is neither
        raise DatasetError(f"{where}: {value} is no time; times are seconds from the start")
    return float(value)


def encodable(text: str) -> str:
    """The text without halves of surrogate pairs, which no encoder and no file would take."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def assemble(
    dataset: str,
    split: str,
    order: Iterable[str],
    captions: Mapping[str, Sequence[Caption]],
    source: Path,
    paths: Mapping[str, str] | None = None,
    missing: Iterable[Missing] = (),
) -> Split:
    """The listed items with their captions. Items without any stay in the gallery, and a note says so."""
    items = tuple(
        Item(name, tuple(captions.get(name, ())), (paths or {}).get(name)) for name in dict.fromkeys(order)
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
        some = ", ".join(bare[:3] + ["…"] * bool(bare[3:]))
        notes.append(
            Missing(
                f"captions of {len(bare)} of {len(items)} items ({some})",
                source,
                "they stay in the gallery, where they compete, and are not asked for",
            )
        )
    return Split(dataset, split, items, tuple(notes))


def as_dict(value: object, where: object, of: str) -> dict[str, Any]:
    """The value, which must be a JSON object."""
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: {of} must be a JSON object, not {type(value).__name__}")
    return value


def as_list(value: object, where: object, of: str) -> list[Any]:
    """The value, which must be a list."""
    if not isinstance(value, list | tuple):
        raise DatasetError(f"{where}: {of} must be a list, not {type(value).__name__}")
    return list(value)


def field(entry: object, key: str, where: object) -> Any:
    """One field of a JSON object."""
    if not isinstance(entry, dict) or key not in entry:
        have = ", ".join(map(repr, list(entry)[:8])) if isinstance(entry, dict) else type(entry).__name__
        raise DatasetError(f"{where}: no field {key!r}; there is {have}")
    return entry[key]


def name(entry: object, key: str, where: object) -> str:
    """An id or a file's name in a field of a JSON object."""
    value = field(entry, key, where)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DatasetError(f"{where}: {key!r} is no name: {str(value)[:60]!r}")
    return encodable(str(value).strip())
