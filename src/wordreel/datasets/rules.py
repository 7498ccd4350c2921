"""Which of an item's captions are queries: all, the first, or all of them joined to a paragraph."""

from __future__ import annotations

from dataclasses import replace

from wordreel.datasets.types import Caption, Split
from wordreel.errors import DatasetError


def apply(split: Split, rule: str, limit: int | None = None) -> Split:
    """The split with the captions that the rule leaves, at most `limit` for each item.

    >>> from wordreel.datasets.types import Item
    >>> film = Item("film", (Caption("a man sings", 0, 5), Caption("he bows", 5, 9)))
    >>> apply(Split("mine", "test", (film,)), "paragraph").captions
    {'film': ['a man sings he bows']}
    """
    return replace(
        split,
        items=tuple(replace(item, captions=_chosen(item.captions[:limit], rule)) for item in split.items),
    )


def _chosen(captions: tuple[Caption, ...], rule: str) -> tuple[Caption, ...]:
    if rule in ("all", "none"):
        return captions
    if rule == "one":
        return captions[:1]
    if rule == "paragraph":
        return (Caption(" ".join(caption.text for caption in captions)),) if captions else ()
    raise DatasetError(f"there is no caption rule {rule!r}; there are all, one, paragraph and none")
