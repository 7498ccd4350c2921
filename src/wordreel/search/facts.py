"""What is known of whole videos before any query: how long they are and who has something to say of them."""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.library.store import LibraryStore

SPEECH = "speech"  # the expert whose words were said
SHOWN = "ocr"  # the expert whose words were shown


@dataclass(frozen=True)
class Facts:
    """`experts` are those with a track; `worded` those of them that read or heard words.

    `kind` is "video", "audio" or "image".
    """

    duration: float
    experts: frozenset[str] = frozenset()
    worded: frozenset[str] = frozenset()
    kind: str = "video"

    @property
    def has_speech(self) -> bool:
        return SPEECH in self.worded

    @property
    def has_text(self) -> bool:
        return SHOWN in self.worded


def facts_of(store: LibraryStore) -> dict[str, Facts]:
    """The facts of every content, in three looks at the catalogue."""
    with store.catalogue.transaction(reading=True):
        contents = store.catalogue.rows("SELECT content, duration, kind FROM contents")
        present = store.catalogue.rows("SELECT content, expert FROM tracks WHERE state = 'present'")
        worded = store.catalogue.rows("SELECT DISTINCT content, expert FROM words")
    experts, words = _grouped(present), _grouped(worded)
    return {
        content: Facts(duration, experts.get(content, _NONE), words.get(content, _NONE), kind)
        for content, duration, kind in contents
    }


_NONE: frozenset[str] = frozenset()


def _grouped(rows: list[tuple[str, str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for content, expert in rows:
        found.setdefault(content, set()).add(expert)
    return {content: frozenset(experts) for content, experts in found.items()}
