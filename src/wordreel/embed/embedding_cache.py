"""Embeddings of clips, one memory-mapped matrix per model; a cache, rebuilt from tracks whenever lost."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.connection import disk_error
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.columns import CLIP, ClipColumns, Liveness, read_clips
from wordreel.errors import NOT_WRITABLE, FingerprintMismatch, LibraryError, NextStep
from wordreel.types import Bool, Float32
from wordreel.util.atomic import append_and_sync, atomic_write, make_dir, sync_dir

FOLDER = "embeddings"
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
    generation: int = 0
    rows: int = 0
    checksums: tuple[int, ...] = (0, 0, 0, 0)
    """Crc32 of the valid rows, in the order of `parts`; without the last one there are no clips yet."""

    @property
    def parts(self) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """The type and shape of a row in each file, by name."""
        return {
            "ids": (np.dtype("<i8"), ()),
            "vectors": (np.dtype("<f4"), (len(self.experts), self.dim)),
            "available": (np.dtype(np.uint8), (len(self.experts),)),
            "clips": (CLIP, ()),
        }

    def width(self, part: str) -> int:
        """Return the bytes of a row in a file."""
        dtype, shape = self.parts[part]
        return dtype.itemsize * int(np.prod(shape, dtype=int))


class EmbeddingCache:
    """`cache/embeddings/<fingerprint>/`: raw files that only grow, and `manifest.json`, replaced last.

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
        """Return the ids of clips of the library that are not embedded yet, in order."""
        now = self._manifest()
        return self._liveness(now, map_part(self.folder, now, "ids")).missing()

    def append(self, ids: Sequence[int], vectors: Float32, available: Bool) -> None:
        """Append rows atomically: `vectors [n, experts, dim]`, `available [n, experts]`."""
        shape = (len(ids), len(self.experts), self.dim)
        if vectors.shape != shape or available.shape != shape[:2]:
            raise ValueError(
                f"expected vectors {shape} and available {shape[:2]}, "
                f"got {vectors.shape} and {available.shape}"
            )
        if not np.isfinite(vectors).all():
            raise ValueError("embeddings must be finite numbers")
        fresh = np.asarray(ids, np.int64)
        with self.store.writing(), self._disk_errors():
            now = self._with_clips(self._manifest())
            if len(np.unique(fresh)) != len(fresh) or _any_known(fresh, map_part(self.folder, now, "ids")):
                raise ValueError("a clip cannot be embedded twice by the same model")
            make_dir(self.folder)
            written = self._write(now, fresh, vectors, available)
            sync_dir(self.folder)
            self._commit(written)

    def load(self) -> Gallery:
        """Return the embeddings of all clips still in the library, copied if some clips are gone."""
        whole, columns = self.open()
        if not len(columns.dead):
            return whole
        live = columns.live
        return Gallery(whole.ids[live], whole.vectors[live], whole.available[live])

    def open(self) -> tuple[Gallery, ClipColumns]:
        """Return every valid row, memory-mapped, and the columns: of which clip, and whether it is gone."""
        now = self._manifest()
        while True:
            whole = open_gallery(self.folder, now)
            described = has_clips(now)
            clips = map_part(self.folder, now, "clips") if described else read_clips(self.store, whole.ids)
            columns = ClipColumns(whole.ids, clips, self._liveness(now, whole.ids).dead())
            read, now = now, self._manifest()
            # Clips that are replaced are embedded before the catalogue has them: without their rows, and with
            # the catalogue that was read after, a video would be missing.
            if now == read:
                return (replace(whole, live=columns.live) if len(columns.dead) else whole), columns

    def raw(self) -> Gallery:
        """Return every valid row, memory-mapped, also of clips that are gone."""
        return open_gallery(self.folder, self._manifest())

    def drop(self, ids: Iterable[int]) -> None:
        """Remove the rows of these clips by rewriting the files."""
        whole = self.raw()
        self._rewrite(whole, ~np.isin(whole.ids, np.asarray(list(ids), np.int64)))

    def compact(self, waste: float = 0.0) -> int:
        """Remove the rows of clips no longer in the library, if they are more than this share of all rows.

        Returns how many it removed. A cache of an earlier version gets its columns.
        """
        with suppress(*NOT_WRITABLE), self.store.writing():
            self._with_clips(self._manifest())
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
        """Return the problems with the files: too short, or not the bytes that were written."""
        now = self._manifest()
        problems = []
        for part, checksum in zip(now.parts, now.checksums, strict=False):
            path, size = _file(self.folder, part, now.generation), now.rows * now.width(part)
            there = path.stat().st_size if path.exists() else 0
            if there < size:
                problems.append(f"{path} has {there} bytes instead of {size}")
            elif size and _checksum(path, size) != checksum:
                problems.append(f"{path} does not match its checksum")
        return problems

    def _liveness(self, now: Manifest, ids: NDArray[np.int64]) -> Liveness:
        return Liveness(self.store, self.folder, now.generation, ids)

    def _rewrite(self, whole: Gallery, alive: Bool) -> None:
        with self.store.writing():
            now = self._manifest()
            fresh = replace(self._empty(), generation=now.generation + 1)
            keep = np.flatnonzero(alive)
            with self._disk_errors():
                make_dir(self.folder)
                for start in range(0, max(1, len(keep)), REWRITTEN_AT_ONCE):
                    some = keep[start : start + REWRITTEN_AT_ONCE]
                    fresh = self._write(fresh, whole.ids[some], whole.vectors[some], whole.available[some])
                sync_dir(self.folder)
                self._commit(fresh)
            for path in self.folder.glob("*.bin"):  # also of an earlier, interrupted rewrite
                if not path.name.endswith(f"-{fresh.generation}.bin"):
                    with suppress(OSError):  # the next rewrite tries again
                        path.unlink()

    def _write(self, now: Manifest, ids: NDArray[np.int64], vectors: Float32, available: Bool) -> Manifest:
        """Write rows after the valid ones; they count once the manifest that is returned is committed."""
        # Rows of absent experts are zero whatever the model put there, so that equal clips have equal bytes.
        clean = np.where(available[..., None], vectors, np.float32(0))
        values = (ids, clean, available, read_clips(self.store, ids))
        checksums = []
        for (part, (dtype, _)), rows, checksum in zip(now.parts.items(), values, now.checksums, strict=True):
            block = np.ascontiguousarray(rows, dtype).tobytes()
            append_and_sync(_file(self.folder, part, now.generation), now.rows * now.width(part), block)
            checksums.append(zlib.crc32(block, checksum))
        return replace(now, rows=now.rows + len(ids), checksums=tuple(checksums))

    def _with_clips(self, now: Manifest) -> Manifest:
        """Write the clips of a cache of an earlier version, which had them elsewhere."""
        if has_clips(now):
            return now
        block = read_clips(self.store, map_part(self.folder, now, "ids")).tobytes()
        with self._disk_errors():
            append_and_sync(_file(self.folder, "clips", now.generation), 0, block)
            sync_dir(self.folder)
            self._commit(replace(now, checksums=(*now.checksums, zlib.crc32(block))))
            shutil.rmtree(self.folder / "columns", ignore_errors=True)
        return self._manifest()

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk_error(self.folder, error) from error

    def _empty(self) -> Manifest:
        return Manifest(self.fingerprint, self.experts, self.dim)

    def _manifest(self) -> Manifest:
        now = read_manifest(self.folder)
        if now is None:
            return self._empty()
        if (now.fingerprint, now.experts, now.dim) != (self.fingerprint, self.experts, self.dim):
            have, other = f"{now.fingerprint} {now.experts} x {now.dim}", f"{self.experts} x {self.dim}"
            raise FingerprintMismatch(
                f"the stored embeddings are by {have}, not by {self.fingerprint} {other}", REINDEX
            )
        return now

    def _commit(self, manifest: Manifest) -> None:
        atomic_write(self.folder / "manifest.json", json.dumps(asdict(manifest)).encode())


def has_clips(now: Manifest) -> bool:
    """Return whether the files of a cache hold the columns of its clips; those of earlier versions do not."""
    return len(now.checksums) == len(now.parts)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a cache; None if it is missing or cannot be read."""
    try:
        raw = json.loads((folder / "manifest.json").read_bytes())
        lists = {name: tuple(raw[name]) for name in ("experts", "checksums")}
        manifest = Manifest(**{**raw, **lists})
        numbers = (manifest.dim, manifest.generation, manifest.rows, *manifest.checksums)
        texts = (manifest.fingerprint, *manifest.experts)
        sound = all(isinstance(n, int) for n in numbers) and all(isinstance(text, str) for text in texts)
        return manifest if sound and len(manifest.checksums) in (3, 4) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def open_gallery(folder: Path, now: Manifest) -> Gallery:
    """Return the valid rows of a cache, memory-mapped."""
    ids, vectors, flags = (map_part(folder, now, part) for part in ("ids", "vectors", "available"))
    return Gallery(ids, vectors, flags != 0, generation=now.generation)


def map_part(folder: Path, now: Manifest, part: str) -> NDArray[Any]:
    """Return the valid rows of one file of a cache, memory-mapped."""
    dtype, shape = now.parts[part]
    if not now.rows:
        return np.zeros((0, *shape), dtype)
    try:
        mapped = np.memmap(_file(folder, part, now.generation), dtype, "r", shape=(now.rows, *shape))
        return mapped if part == "vectors" else np.asarray(mapped)
    except (OSError, ValueError) as error:
        raise LibraryError(f"the embeddings in {folder} are damaged", REINDEX) from error


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
