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

    def stage(self, track: Track) -> StagedTrack:
        """Write a track where `commit` finds it."""

    def stage_all(self, tracks: Sequence[Track]) -> list[StagedTrack]:
        """Write several tracks."""

    def commit(self, staged: StagedTrack) -> None:
        """Make a staged track readable under its name; the catalogue may point at it afterwards."""

    def commit_all(self, staged: Sequence[StagedTrack]) -> None:
        """Make staged tracks readable."""

    def put(self, digest: str, data: bytes) -> None:
        """Store bytes under their hash."""

    def exists(self, digest: str) -> bool:
        """Return whether there is a track of this name."""

    def read(self, digest: str) -> bytes:
        """Return the bytes of a track, unchecked."""

    def load(self, digest: str) -> Track:
        """Return a track; raise a LibraryError if it is missing or damaged."""

    def remove_all(self, digests: Iterable[str]) -> None:
        """Delete these tracks."""

    def all(self) -> Iterator[str]:
        """Yield the name of every track, in order."""

    def strays(self) -> list[str]:
        """Return files that are no tracks."""

    def remove_strays(self, names: Iterable[str]) -> None:
        """Delete these files."""

    def clear_staging(self) -> None:
        """Delete what was staged and never committed."""

    def bytes(self) -> int:
        """Return the size of all tracks."""


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
    from wordreel.catalogue.tracks.track_objects import TrackObjects

    return TrackObjects(address)
