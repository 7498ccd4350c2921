"""Where the tracks of a library are: in its folder, or in an object store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from wordreel.catalogue.tracks.track_files import StagedTrack, TrackFiles
from wordreel.types import Track

TRACKS_SETTING = "tracks"  # of a library: the address of its tracks, where they are not in its folder


class TrackStore(Protocol):
    """Tracks named after their own bytes.

    Any thread of any process may stage, and read what is committed; the rest is for the one writer.
    """

    @property
    def address(self) -> str:
        """A folder or an address such as `s3://bucket/tracks`; `open_tracks` opens it anywhere."""
        ...

    def stage(self, track: Track) -> StagedTrack: ...
    def stage_all(self, tracks: Sequence[Track]) -> list[StagedTrack]: ...
    def commit(self, staged: StagedTrack) -> None:
        """Make a staged track readable under its name; the catalogue may point at it afterwards."""
        ...

    def commit_all(self, staged: Sequence[StagedTrack]) -> None: ...
    def put(self, digest: str, data: bytes) -> None: ...
    def exists(self, digest: str) -> bool: ...
    def read(self, digest: str) -> bytes: ...
    def load(self, digest: str) -> Track: ...
    def remove_all(self, digests: Iterable[str]) -> None: ...
    def all(self) -> Iterator[str]: ...
    def strays(self) -> list[str]: ...
    def remove_strays(self, names: Iterable[str]) -> None: ...
    def clear_staging(self) -> None: ...
    def bytes(self) -> int: ...


def is_object_address(address: str) -> bool:
    """
    >>> is_object_address("s3://bucket/tracks"), is_object_address("/mnt/library/tracks")
    (True, False)
    """
    return "://" in address


def open_tracks(address: str) -> TrackStore:
    """The tracks at an address.

    Args:
        address: A folder, or `s3://bucket/prefix` and the like.

    Raises:
        LibraryError: The address is of no store that wordreel uses, or its package is not installed.
    """
    if not is_object_address(address):
        return TrackFiles(Path(address))
    from wordreel.catalogue.tracks.track_objects import TrackObjects

    return TrackObjects(address)
