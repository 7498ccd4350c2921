"""What a search gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from wordreel.library.records import StoredClip
    from wordreel.library.store import LibraryStore


@dataclass(frozen=True)
class Reason:
    """Why an item was found: an expert, its share of the score, and what it saw, heard or read."""

    expert: str
    share: float  # of the hit's score; the shares of one hit add up to it
    what: str  # a recognised label, or the words themselves
    at: tuple[float, float] | None = None  # seconds, for words

    def __str__(self) -> str:
        return f"{self.expert}: {self.what}"


@dataclass(frozen=True)
class Hit:
    """A moment of a video. A still picture has `start == end == 0`."""

    rank: int
    score: float
    path: str
    start: float
    end: float
    kind: str  # "video", "audio" or "image"
    duration: float
    content: str  # hash of the file's bytes: the same however the file is named
    why: tuple[Reason, ...] = ()
    confidence: float | None = None  # how unusual this score is for this moment; None without a query bank
    norm: str = "none"  # what corrected the score: "none", or the query bank and its method


H = TypeVar("H", bound=Hit)


def hit_of(
    kind: type[H], store: LibraryStore, item: StoredClip, moment: StoredClip, path: str, **more: Any
) -> H:
    """The hit, of this kind, for an item and the moment shown of it; `more` are its other fields."""
    info = store.info(item.content)
    return kind(
        path=path,
        start=moment.start,
        end=moment.end,
        kind=info.kind if info else "video",
        duration=info.duration if info else item.end,
        content=item.content,
        **more,
    )
