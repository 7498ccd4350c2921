"""Embeddings of clips, one memory-mapped matrix per model; a cache, rebuilt from tracks whenever lost."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.connection import disk_error
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.columns import ClipColumns, ColumnCache
from wordreel.errors import FingerprintMismatch, LibraryError, NextStep
from wordreel.types import Bool, Float32
from wordreel.util.atomic import append_and_sync, atomic_write, make_dir, sync_dir

FOLDER = "embeddings"
PARTS = ("ids", "vectors", "available")
REWRITTEN_AT_ONCE = 16_384  # rows
REINDEX = NextStep("embed the library again", "reindex", "Library")


@dataclass(frozen=True)
class Gallery:
    """Embeddings of clips: `ids [n]`, `vectors [n, experts, dim]` (memory-mapped), `available [n, experts]`.

    Row i of each belongs to clip `ids[i]`; rows are in the order they were embedded. `live [n]` says which of
    the clips are still in the library; all are where it is None.
    """

    ids: NDArray[np.int64]
    vectors: Float32
    available: Bool
    live: Bool | None = None
    generation: int = 0  # rows keep their numbers as long as it stays the same

    @property
    def live_rows(self) -> NDArray[np.int64]:
        """Return the rows of clips that are still in the library."""
        return np.arange(len(self)) if self.live is None else np.flatnonzero(self.live)

    @property
    def live_ids(self) -> NDArray[np.int64]:
        """Return the ids of clips that are still in the library."""
        return self.ids if self.live is None else self.ids[self.live]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Manifest:
    """Which part of the files is valid. Rows beyond `rows` are from an interrupted append and are ignored."""

    fingerprint: str
    experts: tuple[str, ...]
    dim: int
    generation: int
    rows: int
    checksums: tuple[int, int, int]  # crc32 of the valid rows, in the order of PARTS


class EmbeddingCache:
    """`cache/embeddings/<fingerprint>/`: three raw files that only grow, and `manifest.json`, replaced last.

    An append writes rows after the valid ones, syncs them, then replaces the manifest: killed at any
    moment, the old manifest and its rows stay valid. `load` leaves out rows of clips that no longer exist;
    `compact` rewrites the files without them. Files mapped by a reader are never truncated below its rows,
    and compaction writes new files, so readers are never disturbed.
    """

    def __init__(self, store: LibraryStore, fingerprint: str, experts: Sequence[str], dim: int) -> None:
        self.store = store
        self.fingerprint = fingerprint
        self.experts = tuple(experts)
        self.dim = dim
        self.folder = store.cache / FOLDER / fingerprint
        self._manifest()  # fail now, not at the first append, if the cache has another shape

    def missing(self) -> list[int]:
        """Ids of clips of the library that are not embedded yet, in order."""
        now = self._manifest()
        return self._columns(now, self._ids(now)).missing()

    def append(
        self, ids: Sequence[int], vectors: Float32, available: Bool, fingerprint: str | None = None
    ) -> None:
        """Append rows atomically: `vectors [n, experts, dim]`, `available [n, experts]`."""
        if fingerprint is not None and fingerprint != self.fingerprint:
            raise mismatch(self.fingerprint, fingerprint)
        shape = (len(ids), len(self.experts), self.dim)
        if vectors.shape != shape or available.shape != shape[:2]:
            raise ValueError(
                f"expected vectors {shape} and available {shape[:2]}, "
                f"got {vectors.shape} and {available.shape}"
            )
        if not np.isfinite(vectors).all():
            raise ValueError("embeddings must be finite numbers")
        fresh = np.asarray(ids, np.int64)
        with self.store.writing():
            now = self._manifest()
            if len(np.unique(fresh)) != len(fresh) or _any_known(fresh, self._ids(now)):
                raise ValueError("a clip cannot be embedded twice by the same model")
            try:
                make_dir(self.folder)
                written = self._write(now, fresh, vectors, available)
                sync_dir(self.folder)
                self._commit(written)
            except OSError as error:
                raise disk_error(self.folder, error) from error

    def load(self) -> Gallery:
        """Return the embeddings of all clips still in the library, copied if some clips are gone."""
        whole, columns = self.open()
        if not len(columns.dead):
            return whole
        live = columns.live
        return Gallery(whole.ids[live], whole.vectors[live], whole.available[live])

    def open(self) -> tuple[Gallery, ClipColumns]:
        """Every valid row, memory-mapped, and the columns that say of which clip and whether it is gone."""
        now = self._manifest()
        while True:
            whole = open_gallery(self.folder, now)
            columns = self._columns(now, whole.ids).load()
            read, now = now, self._manifest()
            # Clips that are replaced are embedded before the catalogue has them: without their rows, and with
            # the catalogue that was read after, a video would be missing.
            if now == read:
                return (replace(whole, live=columns.live) if len(columns.dead) else whole), columns

    def raw(self) -> Gallery:
        """Every valid row, memory-mapped, also of clips that are gone."""
        return open_gallery(self.folder, self._manifest())

    def _columns(self, now: Manifest, ids: NDArray[np.int64]) -> ColumnCache:
        return ColumnCache(self.store, self.folder, now.generation, ids)

    def drop(self, ids: Iterable[int]) -> None:
        """Remove the rows of these clips by rewriting the files."""
        whole = self.raw()
        self._rewrite(whole, ~np.isin(whole.ids, np.asarray(list(ids), np.int64)))

    def compact(self, waste: float = 0.0) -> int:
        """Remove the rows of clips that are gone, if they are more than this share; return how many."""
        whole, columns = self.open()
        if len(columns.dead) <= waste * len(whole):
            return 0
        self._rewrite(whole, columns.live)
        return len(columns.dead)

    def clear(self) -> None:
        """Delete all embeddings of this model."""
        with self.store.writing():
            remove_cache(self.folder)

    def problems(self) -> list[str]:
        """Problems with the files: too short, or not the bytes that were written."""
        now = self._manifest()
        problems = []
        for part, width, checksum in zip(PARTS, self._widths(), now.checksums, strict=True):
            path = self._file(part, now.generation)
            size = path.stat().st_size if path.exists() else 0
            if size < now.rows * width:
                problems.append(f"{path} has {size} bytes instead of {now.rows * width}")
            elif now.rows and _checksum(path, now.rows * width) != checksum:
                problems.append(f"{path} does not match its checksum")
        return problems if problems else self._columns(now, self._ids(now)).problems()

    def _rewrite(self, whole: Gallery, alive: Bool) -> None:
        with self.store.writing():
            now = self._manifest()
            fresh = replace(now, generation=now.generation + 1, rows=0, checksums=(0, 0, 0))
            keep = np.flatnonzero(alive)
            try:
                make_dir(self.folder)
                for start in range(0, max(1, len(keep)), REWRITTEN_AT_ONCE):
                    some = keep[start : start + REWRITTEN_AT_ONCE]
                    fresh = self._write(fresh, whole.ids[some], whole.vectors[some], whole.available[some])
                sync_dir(self.folder)
                self._commit(fresh)
            except OSError as error:
                raise disk_error(self.folder, error) from error
            for path in self.folder.glob("*.bin"):  # also of an earlier, interrupted rewrite
                if not path.name.endswith(f"-{fresh.generation}.bin"):
                    with suppress(OSError):  # the next rewrite tries again
                        path.unlink()

    def _write(self, now: Manifest, ids: NDArray[np.int64], vectors: Float32, available: Bool) -> Manifest:
        """Write rows after the valid ones; they count once the manifest that is returned is committed."""
        blocks = _blocks(ids, vectors, available)
        for part, block, width in zip(PARTS, blocks, self._widths(), strict=True):
            append_and_sync(self._file(part, now.generation), now.rows * width, block)
        sums = [zlib.crc32(b, c) for b, c in zip(blocks, now.checksums, strict=True)]
        return replace(now, rows=now.rows + len(ids), checksums=(sums[0], sums[1], sums[2]))

    def _ids(self, now: Manifest) -> NDArray[np.int64]:
        return _map_ids(self.folder, now)

    def _widths(self) -> tuple[int, int, int]:
        return 8, len(self.experts) * self.dim * 4, len(self.experts)

    def _file(self, part: str, generation: int) -> Path:
        return _file(self.folder, part, generation)

    def _manifest(self) -> Manifest:
        now = read_manifest(self.folder)
        if now is None:
            return Manifest(self.fingerprint, self.experts, self.dim, 0, 0, (0, 0, 0))
        if (now.fingerprint, now.experts, now.dim) != (self.fingerprint, self.experts, self.dim):
            raise mismatch(
                f"{now.fingerprint} {now.experts} x {now.dim}",
                f"{self.fingerprint} {self.experts} x {self.dim}",
            )
        return now

    def _commit(self, manifest: Manifest) -> None:
        atomic_write(self.folder / "manifest.json", json.dumps(asdict(manifest)).encode())


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a cache; None if it is missing or cannot be read."""
    try:
        raw = json.loads((folder / "manifest.json").read_bytes())
        sums = [int(c) for c in raw["checksums"]]
        return Manifest(
            str(raw["fingerprint"]),
            tuple(str(e) for e in raw["experts"]),
            int(raw["dim"]),
            int(raw["generation"]),
            int(raw["rows"]),
            (sums[0], sums[1], sums[2]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def open_gallery(folder: Path, now: Manifest) -> Gallery:
    """Map the valid rows of a cache into memory."""
    shape = (now.rows, len(now.experts), now.dim)
    if not now.rows:
        return Gallery(np.zeros(0, np.int64), np.zeros(shape, np.float32), np.zeros(shape[:2], bool))
    ids = _map_ids(folder, now)
    try:
        vectors = np.memmap(_file(folder, "vectors", now.generation), np.float32, "r", shape=shape)
        flags = np.memmap(_file(folder, "available", now.generation), np.uint8, "r", shape=shape[:2])
    except (OSError, ValueError) as error:
        raise _damaged(folder) from error
    return Gallery(ids, vectors, np.asarray(flags) != 0, generation=now.generation)


def _map_ids(folder: Path, now: Manifest) -> NDArray[np.int64]:
    if not now.rows:
        return np.zeros(0, np.int64)
    try:
        ids = np.memmap(_file(folder, "ids", now.generation), np.int64, "r", shape=(now.rows,))
    except (OSError, ValueError) as error:
        raise _damaged(folder) from error
    return np.asarray(ids)


def _file(folder: Path, part: str, generation: int) -> Path:
    return folder / f"{part}-{generation}.bin"


def caches(store: LibraryStore) -> list[Path]:
    """Return the folder of every model's cache."""
    return sorted(p for p in (store.cache / FOLDER).glob("*") if p.is_dir())


def remove_cache(folder: Path) -> None:
    """Delete a cache, its manifest first, so that no half-deleted cache is ever read."""
    try:
        (folder / "manifest.json").unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    shutil.rmtree(folder, ignore_errors=True)


def _damaged(folder: Path) -> LibraryError:
    return LibraryError(f"the embeddings in {folder} are damaged", REINDEX)


def mismatch(have: str, other: str) -> FingerprintMismatch:
    """Return the error for embeddings of another model."""
    return FingerprintMismatch(f"the stored embeddings are by {have}, not by {other}", REINDEX)


def _blocks(ids: NDArray[np.int64], vectors: Float32, available: Bool) -> tuple[bytes, bytes, bytes]:
    # Rows of absent experts are zero whatever the model put there, so that equal clips have equal bytes.
    clean = np.where(available[..., None], vectors, np.float32(0)).astype(np.float32)
    return ids.astype("<i8").tobytes(), clean.tobytes(), available.astype(np.uint8).tobytes()


def _any_known(fresh: NDArray[np.int64], ids: NDArray[np.int64]) -> bool:
    if not len(ids) or not len(fresh) or fresh.min() > ids.max():
        return False
    return bool(np.isin(fresh, ids).any())


def _checksum(path: Path, size: int) -> int:
    total, left = 0, size
    with path.open("rb") as source:
        while left and (block := source.read(min(left, 1 << 22))):
            total = zlib.crc32(block, total)
            left -= len(block)
    return total
