"""Tags and notes of a library, as Python sees them: `Library.annotations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from wordreel.catalogue.annotations import (
    Annotation,
    TagCount,
    add_annotation,
    change_annotation,
    export_annotations,
    import_annotations,
    list_annotations,
    remove_annotation,
    tag_counts,
)
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep


class AnnotationManager:
    """Tags and notes on moments of a library's videos.

    They stay where they are when a video is analysed again, and come back when a removed one is added again.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store

    def tag(
        self,
        video: str | PathLike[str],
        tag: str,
        start: float | None = None,
        end: float | None = None,
    ) -> Annotation:
        """Tag a moment of a file, from `start` to `end` seconds, or all of it.

        Raises:
            QueryError: The tag or the moment cannot be used.
            LibraryError: The file is not in the library.
        """
        return add_annotation(self._store, self._content(video), "tag", tag, start, end)

    def note(
        self,
        video: str | PathLike[str],
        text: str,
        start: float | None = None,
        end: float | None = None,
    ) -> Annotation:
        """Write a note on a moment of a file, or on all of it. Its words are found by searches.

        Raises:
            QueryError: The text or the moment cannot be used.
            LibraryError: The file is not in the library.
        """
        return add_annotation(self._store, self._content(video), "note", text, start, end)

    def list(self, video: str | PathLike[str] | None = None, tag: str | None = None) -> list[Annotation]:
        """Tags and notes of one file or of all, or the moments with one tag."""
        content = None if video is None else self._content(video)
        return list_annotations(self._store, content, tag=tag)

    def tags(self) -> Sequence[TagCount]:
        """Every tag with the number of its moments, the most used first."""
        return tag_counts(self._store)

    def change(self, number: int, text: str) -> Annotation:
        """Give a tag or a note another text."""
        return change_annotation(self._store, number, text)

    def remove(self, number: int) -> Annotation:
        """Remove a tag or a note by its number; returns it."""
        return remove_annotation(self._store, number)

    def export(self) -> Sequence[dict[str, Any]]:
        """All tags and notes as JSON values."""
        return export_annotations(self._store)

    def import_(self, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Add exported tags and notes, all or none of them.

        Returns:
            How many are new, and how many were left out because their video is not in the library.

        Raises:
            QueryError: One of them is none.
        """
        return import_annotations(self._store, rows)

    def _content(self, video: str | PathLike[str]) -> str:
        file = self._store.file(video)
        if file is None:
            step = NextStep("add it", f"add {fspath(video)}", "Library")
            raise LibraryError(f"{fspath(video)} is not in the library", step)
        return file.content
