"""Caption rules: which of an item's captions are queries (all, the first, or all joined to a paragraph)."""

from __future__ import annotations

from dataclasses import replace

from wordreel.errors import DatasetError
from wordreel.lab.datasets.types import Caption, Split


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
