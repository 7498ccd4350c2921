"""What searches ask of every embedded clip, as memory-mapped columns beside the embeddings.

A clip never changes under its id, so the columns only grow with the embeddings; what varies is which rows are
dead, because their clip has left the library. Opening costs the same for a thousand clips and a million: the
files are mapped, and the catalogue says what is new since they were written (`clip_log`). A cache: if it is
missing or does not fit, it is written again from the catalogue.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.clip_log import ClipChanges, changes_since
from wordreel.catalogue.connection import REPAIR
from wordreel.catalogue.records import StoredClip
from wordreel.errors import NOT_WRITABLE, LibraryError
from wordreel.types import Bool, Int64
from wordreel.util.atomic import append_and_sync, atomic_write, make_dir, sync_dir

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore

FOLDER = "columns"
VERSION = 1
NO_VIDEO = -1  # of a row whose clip was gone before its columns were written
CLIP = np.dtype(
    {
        "names": ["start", "end", "video", "shot", "whole"],
        "formats": ["<f8", "<f8", "<i4", "<i4", "u1"],
        "offsets": [0, 8, 16, 20, 24],
        "itemsize": 32,
    }
)
AT_ONCE = 65_536  # clips read from the catalogue at a time


def damaged_columns(error: Exception) -> LibraryError:
    """Of numbers and names that cannot have been written; opening does not read all of them."""
    return LibraryError(f"the columns of the library's clips are damaged ({error})", REPAIR)


@dataclass(frozen=True, eq=False)
class ClipColumns:
    """`clips [n]` (fields of `CLIP`) of the embedded clips `ids [n]`; `clips["video"]` numbers `contents`.

    `contents [videos]` are content hashes by number, `by_content` the numbers in order of the hashes.
    """

    ids: Int64
    clips: NDArray[Any]
    contents: NDArray[np.bytes_]
    by_content: NDArray[np.int32]
    dead: Int64  # rows whose clip has left the library

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
        """Return the number of each clip's video."""
        return np.asarray(self.clips["video"])

    def content(self, video: int) -> str:
        """Return the content of a video."""
        try:
            return bytes(self.contents[video]).decode("ascii")
        except (IndexError, UnicodeDecodeError) as error:
            raise damaged_columns(error) from None

    def numbers(self, contents: Sequence[str]) -> Int64:
        """Return the number of each content; -1 where no clip of it is embedded."""
        if not len(self.contents) or not contents:
            return np.full(len(contents), NO_VIDEO, np.int64)
        wanted = _hashes(contents, self.contents.dtype.itemsize)
        try:
            at = np.searchsorted(self.contents, wanted, sorter=self.by_content)
            numbers = self.by_content[np.minimum(at, len(self.contents) - 1)]
            same = self.contents[numbers] == wanted
        except (ValueError, IndexError) as error:
            raise damaged_columns(error) from None
        return np.where(same, numbers, NO_VIDEO).astype(np.int64)

    def clip(self, row: int) -> StoredClip:
        """Return the record of one clip."""
        start, end, video, shot, whole = self.clips[row].item()
        return StoredClip(int(self.ids[row]), self.content(video), start, end, bool(whole), shot)


@dataclass(frozen=True)
class _Manifest:
    """Which part of the files is valid. `build` and `edit` are in their names: none is ever overwritten."""

    version: int
    generation: int  # of the embeddings whose rows these are
    build: int
    edit: int
    rows: int
    videos: int
    width: int  # of a content hash
    dead: int
    number: int  # where the log of removed clips stood
    complete: int  # every clip up to this id is embedded
    checksums: tuple[int, int, int, int]  # crc32 of clips, contents, by_content, dead


class ColumnCache:
    """`columns/` in the folder of a model's embeddings: the columns, and `manifest.json`, replaced last."""

    def __init__(self, store: LibraryStore, folder: Path, generation: int, ids: Int64) -> None:
        self.store, self.generation, self.ids = store, generation, ids
        self.folder = folder / FOLDER

    def load(self) -> ClipColumns:
        """Return the columns of all embedded clips, current with the catalogue, and save them if possible."""
        if not len(self.ids):  # perhaps nothing was ever embedded: columns alone would look broken
            return self._build()
        known = self._read()
        columns = None if known is None else self._map(known)
        changes = changes_since(self.store.catalogue, 0 if known is None else known.number)
        if known is None or columns is None or known.number > changes.number:  # the log of another catalogue
            known, columns = None, self._build()
        else:
            removed = _rows_of(self.ids[: known.rows], changes.removed)
            if known.rows == len(self.ids) and not len(removed) and self._complete(known, changes):
                return self._without_hidden(columns, changes)
            columns = self._grow(columns, known.rows, removed)
        self._save(known, columns, changes)
        return self._without_hidden(columns, changes)

    def missing(self) -> list[int]:
        """Ids of clips of the library that are not embedded yet, in order."""
        known = self._read()
        wanted = np.array(self.store.clip_ids(after=known.complete if known else 0), np.int64)
        if not len(wanted):
            return []
        return [int(clip) for clip in wanted[~np.isin(wanted, self.ids)]]

    def problems(self) -> list[str]:
        """Files that are not the bytes that were written."""
        known = self._read()
        columns = None if known is None else self._map(known)
        if known is None or columns is None:
            return []
        return [
            f"{path} does not match its checksum"
            for path, array, checksum in zip(
                self._paths(known), _arrays(columns), known.checksums, strict=True
            )
            if zlib.crc32(array.tobytes()) != checksum
        ]

    def _complete(self, known: _Manifest, changes: ClipChanges) -> bool:
        """Whether there is nothing to save about which clips are embedded."""
        return known.complete >= changes.newest or bool(changes.hidden) or bool(self.missing())

    def _without_hidden(self, columns: ClipColumns, changes: ClipChanges) -> ClipColumns:
        hidden = _rows_of(self.ids, changes.hidden)
        return replace(columns, dead=np.union1d(columns.dead, hidden)) if len(hidden) else columns

    def _build(self) -> ClipColumns:
        nothing = ClipColumns(
            self.ids[:0], np.zeros(0, CLIP), np.zeros(0, "S64"), np.zeros(0, np.int32), np.zeros(0, np.int64)
        )
        alive = np.array(self.store.clip_ids(), np.int64)
        dead = np.flatnonzero(~np.isin(self.ids, alive))
        return self._grow(nothing, 0, dead)

    def _grow(self, before: ClipColumns, rows: int, removed: Int64) -> ClipColumns:
        """With the rows that were embedded since, and without the clips that were removed."""
        if 0 < rows == len(self.ids):
            return replace(before, dead=np.union1d(before.dead, removed))
        clips = np.zeros(len(self.ids), CLIP)
        clips[:rows] = before.clips
        clips["video"][rows:] = NO_VIDEO
        columns = replace(before, ids=self.ids, clips=clips)
        for start in range(rows, len(self.ids), AT_ONCE):
            columns = self._with_records(columns, slice(start, min(start + AT_ONCE, len(self.ids))))
        gone = rows + np.flatnonzero(clips["video"][rows:] == NO_VIDEO)
        return replace(columns, dead=np.unique(np.concatenate([before.dead, removed, gone])))

    def _with_records(self, before: ClipColumns, rows: slice) -> ClipColumns:
        """Fill in some rows from the catalogue; their contents may be new."""
        records = self.store.clips_by_id(self.ids[rows].tolist())
        if not records:
            return before
        names = list(dict.fromkeys(clip.content for clip in records))
        known = before.numbers(names)
        new = [name for name, number in zip(names, known.tolist(), strict=True) if number == NO_VIDEO]
        known[known == NO_VIDEO] = len(before.contents) + np.arange(len(new))
        number_of = dict(zip(names, known.tolist(), strict=True))
        order = np.argsort(self.ids[rows], kind="stable")
        ids = np.array([clip.id for clip in records], np.int64)
        at = rows.start + order[np.searchsorted(self.ids[rows], ids, sorter=order)]
        before.clips[at] = np.array(
            [(c.start, c.end, number_of[c.content], c.shot, c.whole) for c in records], CLIP
        )
        return replace(before, **_with_contents(before, new)) if new else before

    def _save(self, known: _Manifest | None, columns: ClipColumns, changes: ClipChanges) -> None:
        with suppress(*NOT_WRITABLE), self.store.writing():
            on_disk = self._read()
            if on_disk is not None and known is not None and on_disk != known:
                return  # another process was faster
            width = columns.contents.dtype.itemsize
            if known is None or known.width != width:
                build = 1 + (on_disk.build if on_disk else 0)
                known = _Manifest(VERSION, self.generation, build, 0, 0, 0, width, 0, 0, 0, (0, 0, 0, 0))
            complete = changes.newest if not changes.hidden and not self.missing() else known.complete
            tails = (columns.clips[known.rows :], columns.contents[known.videos :])
            wholes = (columns.by_content.tobytes(), columns.dead.tobytes())
            sums = [zlib.crc32(t.tobytes(), c) for t, c in zip(tails, known.checksums[:2], strict=True)]
            fresh = replace(
                known,
                edit=known.edit + 1,
                rows=len(columns),
                videos=len(columns.contents),
                dead=len(columns.dead),
                number=changes.number,
                complete=complete,
                checksums=(sums[0], sums[1], zlib.crc32(wholes[0]), zlib.crc32(wholes[1])),
            )
            make_dir(self.folder)
            paths = self._paths(fresh)
            for path, tail, valid in zip(paths[:2], tails, (known.rows, known.videos), strict=True):
                append_and_sync(path, valid * tail.dtype.itemsize, tail.tobytes())
            for path, whole in zip(paths[2:], wholes, strict=True):
                append_and_sync(path, 0, whole)
            sync_dir(self.folder)
            atomic_write(self.folder / "manifest.json", json.dumps(asdict(fresh)).encode())
            for path in self.folder.glob("*.bin"):
                if path not in paths:
                    path.unlink(missing_ok=True)

    def _read(self) -> _Manifest | None:
        """Return the manifest, if it is of these embeddings."""
        try:
            raw = json.loads((self.folder / "manifest.json").read_bytes())
            found = _Manifest(**{**raw, "checksums": tuple(raw["checksums"])})
            fits = (found.version, found.generation) == (VERSION, self.generation)
            return found if fits and 0 <= found.rows <= len(self.ids) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _map(self, known: _Manifest) -> ClipColumns | None:
        """Map the files of a manifest; None if one is missing or too short."""
        dtypes: tuple[np.dtype[Any], ...] = (
            CLIP,
            np.dtype(f"S{known.width}"),
            np.dtype("<i4"),
            np.dtype("<i8"),
        )
        sizes = (known.rows, known.videos, known.videos, known.dead)
        arrays: list[NDArray[Any]] = []
        try:
            for path, dtype, size in zip(self._paths(known), dtypes, sizes, strict=True):
                mapped = np.memmap(path, dtype, "r", shape=(size,)) if size else np.zeros(0, dtype)
                arrays.append(np.asarray(mapped))
        except (OSError, ValueError):
            return None
        clips, contents, by_content, dead = arrays
        if zlib.crc32(dead.tobytes()) != known.checksums[3]:
            return None
        return ClipColumns(self.ids[: known.rows], clips, contents, by_content, dead)

    def _paths(self, known: _Manifest) -> list[Path]:
        build = f"{known.generation}-{known.build}"
        names = (f"clips-{build}", f"contents-{build}")
        edits = (f"by_content-{build}-{known.edit}", f"dead-{build}-{known.edit}")
        return [self.folder / f"{name}.bin" for name in (*names, *edits)]


def _arrays(columns: ClipColumns) -> tuple[NDArray[Any], ...]:
    return columns.clips, columns.contents, columns.by_content, columns.dead


def _with_contents(before: ClipColumns, new: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the two arrays of contents with new ones at the end."""
    added = _hashes(new, before.contents.dtype.itemsize)
    order = np.argsort(added, kind="stable")
    at = np.searchsorted(before.contents, added[order], sorter=before.by_content)
    numbers = (len(before.contents) + order).astype(np.int32)
    return {
        "contents": np.concatenate([before.contents, added]),
        "by_content": np.insert(before.by_content, at, numbers),
    }


def _hashes(contents: Sequence[str], width: int) -> NDArray[np.bytes_]:
    names = np.array([content.encode() for content in contents], np.bytes_)
    return names if names.dtype.itemsize > width else names.astype(f"S{width}")


def _rows_of(ids: Int64, wanted: Sequence[int]) -> Int64:
    """Return the rows of those ids that there are."""
    if not wanted or not len(ids):
        return np.zeros(0, np.int64)
    few = np.unique(np.array(wanted, np.int64))
    at = np.minimum(np.searchsorted(few, ids), len(few) - 1)
    return np.flatnonzero(few[at] == ids)
