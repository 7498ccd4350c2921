"""Track files: `tracks/ab/<sha256>.safetensors`, named after their own bytes."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.atomic import make_dir, sync_dir, write_and_sync
from wordreel.errors import LibraryError
from wordreel.library.catalogue import REPAIR, disk_full
from wordreel.types import Track, Words

SUFFIX = ".safetensors"
STAGING = "passing"
WRITERS = 16  # threads that wait for the disk
IMPORTED_FINGERPRINT = "imported:"  # prefix of the fingerprints of tracks computed elsewhere


def encode(track: Track) -> bytes:
    """The bytes of a track: the same track gives the same bytes, hence the same name.

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
    from safetensors.numpy import load

    parts = load(data)
    words = tuple(
        Words(str(t), float(a), float(b), float(s)) for t, a, b, s in json.loads(parts["words"].tobytes())
    )
    return Track(parts["values"].astype(np.float32, copy=False), parts["times"], words)


@dataclass(frozen=True)
class StagedTrack:
    """A track on disk under a temporary name, not yet committed."""

    hash: str
    path: Path


class TrackFiles:
    """The `tracks` folder. `stage` may be called from any thread, everything else only by the one writer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.staging = root / STAGING

    def path(self, digest: str) -> Path:
        return self.root / digest[:2] / f"{digest}{SUFFIX}"

    def stage(self, track: Track) -> StagedTrack:
        data = encode(track)
        staged = StagedTrack(hashlib.sha256(data).hexdigest(), self.staging / uuid.uuid4().hex)
        try:
            write_and_sync(staged.path, data)
        except OSError as error:
            staged.path.unlink(missing_ok=True)
            raise disk_full(self.root, str(error)) from error
        return staged

    def commit(self, staged: StagedTrack) -> None:
        """Move a staged track to its final name; the catalogue may point at it afterwards."""
        target = self.path(staged.hash)
        try:
            make_dir(target.parent)
            staged.path.replace(target)
            sync_dir(target.parent)
        except OSError as error:
            raise disk_full(self.root, str(error)) from error

    def stage_all(self, tracks: Sequence[Track]) -> list[StagedTrack]:
        """Stage many tracks in parallel: a disk syncs many files in about the time of one."""
        with ThreadPoolExecutor(WRITERS) as pool:
            return list(pool.map(self.stage, tracks))

    def commit_all(self, staged: Iterable[StagedTrack]) -> None:
        """Commit many staged tracks and sync each folder once."""
        try:
            folders = set()
            for one in staged:
                target = self.path(one.hash)
                make_dir(target.parent)
                one.path.replace(target)
                folders.add(target.parent)
            with ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(sync_dir, folders))
        except OSError as error:
            raise disk_full(self.root, str(error)) from error

    def load(self, digest: str) -> Track:
        path = self.path(digest)
        try:
            return decode(path.read_bytes())
        except FileNotFoundError as error:
            raise LibraryError(f"the track file {path} is missing", REPAIR) from error
        except Exception as error:
            raise LibraryError(f"the track file {path} cannot be read ({error})", REPAIR) from error

    def remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def all(self) -> Iterator[str]:
        """The hash in every track file's name, in order."""
        for folder in sorted(self.root.glob("??")):
            yield from sorted(
                p.name.removesuffix(SUFFIX) for p in folder.iterdir() if p.name.endswith(SUFFIX)
            )

    def strays(self) -> list[Path]:
        """Files left behind by writers that were killed."""
        misnamed = (
            p for folder in self.root.glob("??") for p in folder.iterdir() if not p.name.endswith(SUFFIX)
        )
        staged = self.staging.iterdir() if self.staging.is_dir() else ()
        return sorted([*staged, *misnamed])

    def clear_staging(self) -> None:
        for path in self.staging.iterdir():
            path.unlink(missing_ok=True)

    def bytes(self) -> int:
        return sum(self.path(digest).stat().st_size for digest in self.all())
