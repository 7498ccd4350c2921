"""Extract tracks on workers: what a worker does, and the extractor that has it done."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from wordreel.catalogue.connection import NAME
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import is_object_address, open_tracks
from wordreel.errors import LibraryError, MediaError, NextStep, WeightsError
from wordreel.experts.base import Expert
from wordreel.ingest.extract import FileTracks, LocalExtractor, MediaDecoder, OnPosition
from wordreel.media import Fence
from wordreel.media.types import MediaInfo
from wordreel.runtime.store import WeightStore
from wordreel.workers.executor import CallFailed, Executor

T = TypeVar("T")


@dataclass(frozen=True)
class LoadFrom:
    """Loads experts from a weight store that is at the same path on every node."""

    weights: Path

    def __call__(self, name: str) -> Expert:
        """Load an expert with the weights of this machine."""
        from wordreel.experts import registry

        return registry.load(name, WeightStore(self.weights))


@dataclass(frozen=True)
class ExtractSetup:
    """All that a worker needs to know before its first file; equal setups share what was loaded."""

    experts: tuple[str, ...]
    load_expert: Callable[[str], Expert]
    open_decoder: Callable[[], AbstractContextManager[MediaDecoder]]
    tracks: str  # the address of the library's tracks
    library: Path
    inode: int  # of the catalogue: the same file has the same one on every node

    @classmethod
    def of(
        cls,
        store: LibraryStore,
        experts: Sequence[str],
        load_expert: Callable[[str], Expert],
        open_decoder: Callable[[], AbstractContextManager[MediaDecoder]] = Fence,
    ) -> ExtractSetup:
        """Describe a library and experts, for workers."""
        inode = (store.path / NAME).stat().st_ino
        tracks = store.track_files.address
        return cls(tuple(experts), load_expert, open_decoder, tracks, store.path, inode)


@lru_cache(maxsize=1)  # a worker serves one library at a time, and keeps its networks loaded
def _extractor(setup: ExtractSetup) -> LocalExtractor:
    _check_shared(setup)
    experts = [setup.load_expert(name) for name in setup.experts]
    decoder = setup.open_decoder().__enter__()  # left open: it ends with the worker
    return LocalExtractor(experts, decoder, open_tracks(setup.tracks))


def _check_shared(setup: ExtractSetup) -> None:
    """Refuse to write tracks where the writer would not find them."""
    if is_object_address(setup.tracks):
        return
    try:
        shared = (setup.library / NAME).stat().st_ino == setup.inode
    except OSError:
        shared = False
    if not shared:
        raise LibraryError(
            f"{socket.gethostname()} does not see the library at {setup.library}",
            NextStep("mount its folder at the same path on every node, or move its tracks", "tracks s3://…"),
        )


def _call(setup: ExtractSetup, method: str, *arguments: Any) -> Any:
    return getattr(_extractor(setup), method)(*arguments)


def _fingerprints(setup: ExtractSetup) -> dict[str, str]:
    return _extractor(setup).fingerprints


def _extract(
    setup: ExtractSetup,
    fingerprints: Mapping[str, str],
    path: Path,
    stamp: FileStamp,
    names: Sequence[str],
    report: OnPosition,
) -> FileTracks:
    extractor = _extractor(setup)
    for name in names:
        if extractor.fingerprints[name] != fingerprints[name]:
            raise WeightsError(
                f"{socket.gethostname()} has other weights of the expert {name}",
                NextStep("use the same version of wordreel and the same weights on every node"),
            )
    return extractor.extract(path, stamp, names, report)


class ClusterExtractor:
    """Has files read and experts run by the workers of an executor. Threads share it.

    A file whose workers die again and again is that file's failure; a node that cannot see the files, the
    library or the weights ends the run, because every file would fail there.
    """

    def __init__(self, executor: Executor, setup: ExtractSetup) -> None:
        self._executor, self._setup = executor, setup
        self.fingerprints = executor.run(_fingerprints, setup)

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs, from a worker."""
        info: MediaInfo = self._on_file(path, lambda: self._executor.run(_call, self._setup, "probe", path))
        return info

    def hash(self, path: Path, check_stop: Callable[[], None]) -> str:
        """Return the hash of a file's bytes, from a worker."""
        check_stop()
        digest: str = self._on_file(path, lambda: self._executor.run(_call, self._setup, "hash", path))
        return digest

    def extract(
        self,
        path: Path,
        stamp: FileStamp,
        names: Sequence[str],
        on_position: OnPosition,
        on_frames_done: Callable[[], None] = lambda: None,
    ) -> FileTracks:
        """Decode a file and run the experts on it, on a worker."""
        on_position(0.0)
        arguments = self._setup, self.fingerprints, path, stamp, tuple(names)
        return self._on_file(path, lambda: self._executor.run(_extract, *arguments, on_event=on_position))

    @staticmethod
    def _on_file(path: Path, work: Callable[[], T]) -> T:
        try:
            return work()
        except CallFailed as error:
            raise MediaError(error.message) from error
        except FileNotFoundError as error:
            if not os.path.lexists(path):
                raise
            raise LibraryError(
                f"a node of the cluster does not see {path}",
                NextStep("mount the folder of the media at the same path on every node"),
            ) from error
