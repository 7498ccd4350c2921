"""Tracks as content-addressed files: `tracks/ab/<sha256>.safetensors`, named after their own bytes.

They are in the library's folder, or in an object store (`track_objects`).
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.catalogue.connection import REPAIR, disk_error
from wordreel.errors import LibraryError
from wordreel.types import Track, Words
from wordreel.util.atomic import atomic_write, make_dir, sync_dir, write_and_sync

SUFFIX = ".safetensors"
STAGING = "passing"
WRITERS = 16  # threads that wait for the disk
TRACKS_SETTING = "tracks"  # of a library: the address of its tracks, where they are not in its folder
IMPORTED_FINGERPRINT = "imported:"  # prefix of the fingerprints of tracks computed elsewhere


def encode(track: Track) -> bytes:
    """Return the bytes of a track: the same track gives the same bytes, hence the same name.

    Words travel as a JSON tensor and not as metadata, because safetensors does not order metadata.

    >>> t = Track(np.ones((1, 2), np.float32), np.zeros((1, 2)), (Words("hi", 0.0, 1.0),))
    >>> decode(encode(t)).words == t.words and encode(t) == encode(decode(encode(t)))
    True
    """
    from safetensors.numpy import save

    words = json.dumps([[w.text, w.start, w.end, w.score] for w in track.words]).encode("ascii")
    return bytes(
        save(
            {
                "values": np.ascontiguousarray(track.values, "<f4"),
                "times": np.ascontiguousarray(track.times, "<f8"),
                "words": np.frombuffer(words, np.uint8),
            }
        )
    )


def decode(data: bytes) -> Track:
    """Return the track of these bytes."""
    from safetensors.numpy import load

    parts = load(data)
    words = tuple(
        Words(str(t), float(a), float(b), float(s)) for t, a, b, s in json.loads(parts["words"].tobytes())
    )
    return Track(parts["values"].astype(np.float32, copy=False), parts["times"], words)


@dataclass(frozen=True)
class StagedTrack:
    """A track that is written and not yet committed; without a temporary file where objects appear whole."""

    hash: str
    temporary: Path | None = None


class TrackStore(ABC):
    """Tracks named after their own bytes.

    Any thread of any process may stage, and read what is committed; the rest is for the one writer.
    """

    address: str  # a folder, or such as `s3://bucket/tracks`; `open_tracks` opens it anywhere
    checked = False  # whether tracks are compared with their names when they are loaded

    @abstractmethod
    def stage(self, track: Track) -> StagedTrack:
        """Write a track; nobody reads it before it is committed."""

    @abstractmethod
    def put(self, digest: str, data: bytes) -> None:
        """Write a track under its name at once, whole or not at all."""

    @abstractmethod
    def exists(self, digest: str) -> bool:
        """Return whether there is a track of this name."""

    @abstractmethod
    def read(self, digest: str) -> bytes:
        """Return the bytes of a track, unchecked; FileNotFoundError if there are none."""

    @abstractmethod
    def remove_all(self, digests: Iterable[str]) -> None:
        """Delete tracks, durably."""

    @abstractmethod
    def all(self) -> Iterator[str]:
        """Yield the name of every track, in order."""

    @abstractmethod
    def bytes(self) -> int:
        """Return the size of all tracks."""

    def load(self, digest: str) -> Track:
        """Return a track; a LibraryError if it is missing or damaged."""
        name = f"the track {digest} in {self.address}"
        try:
            data = self.read(digest)
            if self.checked and hashlib.sha256(data).hexdigest() != digest:
                raise ValueError("its bytes are not those it is named after")
            return decode(data)
        except FileNotFoundError as error:
            raise LibraryError(f"{name} is missing", REPAIR) from error
        except Exception as error:
            raise LibraryError(f"{name} cannot be read ({error})", REPAIR) from error

    def stage_all(self, tracks: Sequence[Track]) -> list[StagedTrack]:
        """Stage many tracks in parallel: a disk syncs many files in about the time of one."""
        with ThreadPoolExecutor(WRITERS) as pool:
            return list(pool.map(self.stage, tracks))

    def commit(self, staged: StagedTrack) -> None:
        """Make a staged track readable under its name; the catalogue may point at it afterwards."""
        self.commit_all([staged])

    def commit_all(self, staged: Sequence[StagedTrack]) -> None:  # noqa: B027
        """Commit many staged tracks; nothing is left to do where they appear whole."""

    def strays(self) -> list[str]:
        """Return the files left behind by writers that were killed."""
        return []

    def remove_strays(self, names: Iterable[str]) -> None:  # noqa: B027
        """Delete files left behind by writers that were killed."""

    def clear_staging(self) -> None:  # noqa: B027
        """Delete what is staged and not committed, and flush that committed tracks have left."""


class TrackFiles(TrackStore):
    """The `tracks` folder. `stage` may be called from any thread, everything else only by the one writer."""

    def __init__(self, root: Path) -> None:
        self.root, self.address = root, str(root)
        self.staging = root / STAGING

    def path(self, digest: str) -> Path:
        """Return the file of a track."""
        return self.root / digest[:2] / f"{digest}{SUFFIX}"

    def stage(self, track: Track) -> StagedTrack:
        """Write a track beside its place; `commit_all` moves it there."""
        data = encode(track)
        from uuid import uuid4  # imports `platform`, which a search does not need

        temporary = self.staging / uuid4().hex
        try:
            write_and_sync(temporary, data)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise disk_error(self.root, error) from error
        return StagedTrack(hashlib.sha256(data).hexdigest(), temporary)

    def commit_all(self, staged: Sequence[StagedTrack]) -> None:
        """Commit many staged tracks and sync each folder once."""
        try:
            folders = set()
            for one in staged:
                target = self.path(one.hash)
                make_dir(target.parent)
                if one.temporary is not None:
                    one.temporary.replace(target)
                folders.add(target.parent)
            _sync_all(folders)
        except OSError as error:
            raise disk_error(self.root, error) from error

    def put(self, digest: str, data: bytes) -> None:
        """Write a track under its name at once, whole or not at all."""
        try:
            make_dir(self.path(digest).parent)
            atomic_write(self.path(digest), data)
        except OSError as error:
            raise disk_error(self.root, error) from error

    def exists(self, digest: str) -> bool:
        """Return whether there is a track of this name."""
        return self.path(digest).is_file()

    def read(self, digest: str) -> bytes:
        """Return the bytes of a track, unchecked; raise FileNotFoundError if there are none."""
        return self.path(digest).read_bytes()

    def remove_all(self, digests: Iterable[str]) -> None:
        """Delete tracks, durably: one that came back after a power cut would be used by nothing."""
        folders = set()
        try:
            for digest in digests:
                path = self.path(digest)
                if path.exists():
                    path.unlink()
                    folders.add(path.parent)
            _sync_all(folders)
        except OSError as error:
            raise disk_error(self.root, error) from error

    def all(self) -> Iterator[str]:
        """Yield the hash in every track file's name, in order."""
        for folder in sorted(self.root.glob("??")):
            yield from sorted(
                p.name.removesuffix(SUFFIX) for p in folder.iterdir() if p.name.endswith(SUFFIX)
            )

    def strays(self) -> list[str]:
        """Return the files left behind by writers that were killed."""
        misnamed = (
            p for folder in self.root.glob("??") for p in folder.iterdir() if not p.name.endswith(SUFFIX)
        )
        staged = self.staging.iterdir() if self.staging.is_dir() else ()
        return sorted(map(str, [*staged, *misnamed]))

    def remove_strays(self, names: Iterable[str]) -> None:
        """Delete these files."""
        try:
            paths = list(map(Path, names))
            for path in paths:
                path.unlink(missing_ok=True)
            _sync_all({path.parent for path in paths})
        except OSError as error:
            raise disk_error(self.root, error) from error

    def clear_staging(self) -> None:
        """Delete what is staged and not committed, and flush that committed tracks have left."""
        try:
            for path in self.staging.iterdir():
                path.unlink(missing_ok=True)
            sync_dir(self.staging)
        except OSError as error:
            raise disk_error(self.root, error) from error

    def bytes(self) -> int:
        """Return the size of all tracks."""
        return sum(self.path(digest).stat().st_size for digest in self.all())


def _sync_all(folders: set[Path]) -> None:
    if len(folders) <= 1:  # the usual case; threads would cost more than they save
        for folder in folders:
            sync_dir(folder)
        return
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(sync_dir, folders))


def is_object_address(address: str) -> bool:
    """Return whether an address is of an object store."""
    return "://" in address


def open_tracks(address: str) -> TrackStore:
    """Return the tracks at an address.

    Args:
        address: A folder, or `s3://bucket/prefix` and the like.

    Raises:
        LibraryError: The address is of no store that wordreel uses, or its package is not installed.
    """
    if not is_object_address(address):
        return TrackFiles(Path(address))
    from wordreel.catalogue.track_objects import TrackObjects

    return TrackObjects(address)
