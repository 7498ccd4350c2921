"""What searches ask of every embedded clip, as columns of the rows of its embeddings.

A clip never changes under its id, so what it is lies beside its embedding. What varies is which rows are
dead, because their clip has left the library: the catalogue says what has changed since that was saved
(`catalogue.remove`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.records import StoredClip
from wordreel.catalogue.remove import changes_since
from wordreel.errors import NOT_WRITABLE
from wordreel.types import Bool, Int64
from wordreel.util.atomic import atomic_write

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore

NO_VIDEO = -1
CLIP = np.dtype(
    [("start", "<f8"), ("end", "<f8"), ("shot", "<i4"), ("whole", "u1"), ("", "V3"), ("content", "S64")]
)
"""One clip; `content` is the hash of its video, empty where the clip was gone before this was written."""
READ_AT_ONCE = 65_536  # clips, from the catalogue


@dataclass(frozen=True, eq=False)
class ClipColumns:
    """`clips [n]` (fields of `CLIP`) of the embedded clips `ids [n]`, and the `dead` rows among them.

    Videos have numbers, in the order in which they come first.
    """

    ids: Int64
    clips: NDArray[Any]
    dead: Int64

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def live(self) -> Bool:
        """`[n]`: whether the clip is in the library."""
        live = np.ones(len(self), bool)
        live[self.dead] = False
        return live

    @property
    def video(self) -> NDArray[np.int32]:
        """`[n]`: the number of each clip's video."""
        return self._videos[2]

    @property
    def video_count(self) -> int:
        """How many videos have numbers."""
        return len(self._videos[0])

    @cached_property
    def _videos(self) -> tuple[NDArray[np.bytes_], NDArray[np.int32], NDArray[np.int32]]:
        """The content hashes in order, the number of each, and the number of each clip's video."""
        names = self.clips["content"]
        starts = np.flatnonzero(np.concatenate([[len(names) > 0], names[1:] != names[:-1]]))
        hashes, first, of = np.unique(names[starts], return_index=True, return_inverse=True)
        numbers = np.empty(len(hashes), np.int32)
        numbers[np.argsort(first, kind="stable")] = np.arange(len(hashes))
        return hashes, numbers, np.repeat(numbers[of], np.diff(np.append(starts, len(names))))

    @cached_property
    def _by_number(self) -> NDArray[np.bytes_]:
        hashes, numbers, _ = self._videos
        contents = np.empty_like(hashes)
        contents[numbers] = hashes
        return contents

    def content(self, video: int) -> str:
        """Return the content of a video's number."""
        return bytes(self._by_number[video]).decode("ascii", "replace")

    def numbers(self, contents: Sequence[str]) -> Int64:
        """Return the number of each content; -1 where no clip of it is embedded."""
        hashes, numbers, _ = self._videos
        if not len(hashes) or not contents:
            return np.full(len(contents), NO_VIDEO, np.int64)
        wanted = np.array([content.encode() for content in contents], np.bytes_)
        at = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        return np.where(hashes[at] == wanted, numbers[at], NO_VIDEO).astype(np.int64)

    def __getitem__(self, row: int) -> StoredClip:
        """Return the record of one clip."""
        clip = self.clips[row]
        content = bytes(clip["content"]).decode("ascii", "replace")
        start, end, whole, shot = (clip[name].item() for name in ("start", "end", "whole", "shot"))
        return StoredClip(int(self.ids[row]), content, start, end, bool(whole), shot)


def read_clips(store: LibraryStore, ids: Int64) -> NDArray[Any]:
    """Return `[n]` (fields of `CLIP`): the clips with these ids, blank where there are none."""
    clips = np.zeros(len(ids), CLIP)
    for start in range(0, len(ids), READ_AT_ONCE):
        some = ids[start : start + READ_AT_ONCE].tolist()
        rows = {clip: row for row, clip in enumerate(some, start)}
        for clip in store.clips_by_id(some):
            clips[rows[clip.id]] = (clip.start, clip.end, clip.shot, clip.whole, b"", clip.content.encode())
    return clips


@dataclass(frozen=True)
class _Checked:
    """What was found out about the first `rows` of a generation of the embeddings, and when."""

    generation: int
    rows: int = 0
    number: int = 0  # where the log of removed clips stood
    complete: int = 0  # every clip up to this id was embedded
    dead: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Liveness:
    """Which of the embedded clips `ids [n]` are in the library, and which of the library's are not embedded.

    What was checked is saved in `live.json` in `folder`; without it, all rows are checked again.
    """

    store: LibraryStore
    folder: Path
    generation: int
    ids: Int64

    def dead(self) -> Int64:
        """Return the rows whose clip has left the library, or has no file now."""
        before = self._read()
        changes = changes_since(self.store.catalogue, before.number)
        if before.number > changes.number:  # the log of another catalogue
            before, changes = _Checked(self.generation), changes_since(self.store.catalogue, 0)
        new = self.ids[before.rows :]
        gone = before.rows + np.flatnonzero(~np.isin(new, self._stored(new)))
        removed = _rows_of(self.ids[: before.rows], changes.removed)
        dead = np.unique(np.concatenate([np.array(before.dead, np.int64), removed, gone]))
        complete = before.complete
        if complete < changes.newest and not changes.hidden and not self._missing(complete):
            complete = changes.newest
        checked = _Checked(self.generation, len(self.ids), changes.number, complete, tuple(dead.tolist()))
        if replace(checked, number=before.number) != before or len(changes.removed):
            self._save(checked)
        return np.union1d(dead, _rows_of(self.ids, changes.hidden))

    def missing(self) -> list[int]:
        """Return the ids of clips of the library that are not embedded yet, in order."""
        return self._missing(self._read().complete)

    def _missing(self, complete: int) -> list[int]:
        wanted = np.array(self.store.clip_ids(after=complete), np.int64)
        return [int(clip) for clip in wanted[~np.isin(wanted, self.ids)]] if len(wanted) else []

    def _stored(self, ids: Int64) -> list[int]:
        """Return the ids of all clips in the catalogue among some, and of others between them."""
        if not len(ids):
            return []
        query = "SELECT id FROM clips WHERE id BETWEEN ? AND ?"
        return [clip for (clip,) in self.store.catalogue.rows(query, int(ids.min()), int(ids.max()))]

    def _read(self) -> _Checked:
        try:
            values = json.loads((self.folder / "live.json").read_bytes())
            checked = _Checked(**{**values, "dead": tuple(map(int, values["dead"]))})
            fits = checked.generation == self.generation and 0 <= checked.rows <= len(self.ids)
            inside = all(0 <= row < checked.rows for row in checked.dead)
        except (OSError, ValueError, KeyError, TypeError):
            return _Checked(self.generation)
        return checked if fits and inside else _Checked(self.generation)

    def _save(self, checked: _Checked) -> None:
        if len(self.ids):  # what was never embedded has no folder
            with suppress(*NOT_WRITABLE), self.store.writing():
                atomic_write(self.folder / "live.json", json.dumps(asdict(checked)).encode())


def _rows_of(ids: Int64, wanted: Iterable[int]) -> Int64:
    """Return the rows of some ids, those that there are."""
    return np.flatnonzero(np.isin(ids, np.array(list(wanted), np.int64)))
