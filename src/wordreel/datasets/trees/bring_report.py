"""What an import works on, and what it tells when it is done."""

from __future__ import annotations

from dataclasses import dataclass, field

from wordreel.datasets.types import Caption, Item, Missing
from wordreel.library.captions import Line


@dataclass
class ImportReport:
    """What one import did. An item is added, updated or skipped, or it failed as a whole."""

    kind: str
    dataset: str
    added: int = 0
    updated: int = 0  # known items that got experts they did not have, or other captions
    skipped: int = 0  # there already
    captions: dict[str, int] = field(default_factory=dict)  # by split, of the items imported or there
    experts: dict[str, tuple[int, int]] = field(default_factory=dict)  # read now: (present, absent)
    failed: list[tuple[str, str]] = field(default_factory=list)  # (path or item, reason)
    missing: list[Missing] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Entry:
    """An item with what each split says of it."""

    item: Item
    captions: dict[str, tuple[Caption, ...]]

    def lines(self, split: str) -> list[Line]:
        return [(caption.text, caption.start, caption.end) for caption in self.captions[split]]
