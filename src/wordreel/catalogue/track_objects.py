"""Tracks in an object store, through fsspec: `s3://bucket/prefix/ab/<sha256>.safetensors`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, TypeVar

from wordreel.catalogue.tracks import SUFFIX, StagedTrack, TrackStore, encode
from wordreel.errors import LibraryError, NextStep
from wordreel.types import Track

T = TypeVar("T")
PROTOCOLS = ("s3", "gs", "abfs", "az", "file", "memory")
"""Stores that wordreel opens. An allow-list: fsspec's others fetch from the web or run programs."""


class TrackObjects(TrackStore):
    """Tracks as objects, which appear whole under their final names: there is nothing to commit.

    A killed writer leaves objects that the catalogue does not name; the next writer sweeps them. Options and
    credentials come from fsspec's own configuration and the environment.
    """

    checked = True  # others may be able to write there

    def __init__(self, address: str) -> None:
        protocol, _, prefix = address.partition("://")
        if protocol not in PROTOCOLS or not prefix.strip("/"):
            raise LibraryError(
                f"{address!r} is not an address of tracks",
                NextStep("use a bucket and a folder of it: s3://BUCKET/FOLDER"),
            )
        self.address = address.rstrip("/")
        self._protocol, self._root = protocol, prefix.rstrip("/")

    @cached_property
    def _files(self) -> Any:
        try:
            import fsspec

            return fsspec.filesystem(self._protocol)
        except (ImportError, ValueError) as error:
            step = NextStep("install it: pip install 'wordreel[s3]' for s3://, gcsfs or adlfs for others")
            raise LibraryError(f"no package for {self._protocol}:// is installed ({error})", step) from error

    def stage(self, track: Track) -> StagedTrack:
        """Upload a track under its name."""
        data = encode(track)
        digest = hashlib.sha256(data).hexdigest()
        self.put(digest, data)
        return StagedTrack(digest)

    def put(self, digest: str, data: bytes) -> None:
        """Write the bytes of a track."""
        path = self._path(digest)
        if self._ask(lambda: self._files.exists(path) and self._files.size(path)) == len(data):
            return  # the same bytes: never overwrite what somebody may be reading
        self._ask(lambda: self._files.makedirs(path.rpartition("/")[0], exist_ok=True))
        self._ask(lambda: self._files.pipe_file(path, data))

    def exists(self, digest: str) -> bool:
        """Return whether there is a track of this name."""
        return bool(self._ask(lambda: self._files.exists(self._path(digest))))

    def read(self, digest: str) -> bytes:
        """Return the bytes of a track, unchecked; raise FileNotFoundError if there are none."""
        return bytes(self._ask(lambda: self._files.cat_file(self._path(digest))))

    def remove_all(self, digests: Iterable[str]) -> None:
        """Delete these tracks."""
        for path in map(self._path, digests):
            with suppress(FileNotFoundError):
                self._ask(partial(self._files.rm_file, path))

    def all(self) -> Iterator[str]:
        """Yield the hash in every track's name, in order."""
        names = (path.rpartition("/")[2] for path in self._sizes())
        yield from sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))

    def bytes(self) -> int:
        """Return the size of all tracks."""
        return sum(self._sizes().values())

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}{SUFFIX}"

    def _sizes(self) -> dict[str, int]:
        self._ask(self._files.invalidate_cache)
        try:
            found = self._ask(lambda: self._files.find(self._root, detail=True))
        except FileNotFoundError:
            return {}
        return {path: int(about["size"]) for path, about in found.items()}

    def _ask(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (FileNotFoundError, LibraryError):
            raise
        except Exception as error:
            step = NextStep("check the address, the credentials and the network, and run the command again")
            raise LibraryError(f"{self.address} does not answer: {error}", step) from error
