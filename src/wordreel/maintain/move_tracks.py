"""Move the tracks of a library to an object store, or back into its folder."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

from wordreel.catalogue.connection import REPAIR
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import TRACKS_SETTING, WRITERS, TrackStore, is_object_address, open_tracks
from wordreel.errors import LibraryError, NextStep
from wordreel.progress import Progress, ProgressCallback

FOLDER = "folder"  # the address that stands for the library's own folder


def move_tracks(store: LibraryStore, address: str, on_progress: ProgressCallback | None = None) -> int:
    """Copy every track to another place, check it, use that place from now on, then delete the old copies.

    Stopped at any moment, the library uses the old place or the new one; the same call resumes.

    Args:
        store: The library.
        address: An object store, `s3://bucket/prefix`, with nothing else in it, or `folder`.
        on_progress: Called as tracks are copied.

    Returns:
        How many tracks there are.

    Raises:
        LibraryBusy: Another process is writing to the library.
        LibraryError: The place cannot be used, or a track is missing or damaged.
    """
    if address != FOLDER and not is_object_address(address):
        step = NextStep("use s3://BUCKET/FOLDER, or `folder` for the library's own", "tracks ADDRESS")
        raise LibraryError(f"{address!r} is not an object store", step)
    with store.writing():
        old = store.track_files
        new = open_tracks(str(store.path / "tracks") if address == FOLDER else address)
        if new.address == old.address:
            return sum(1 for _ in old.all())
        digests = sorted(store.track_names())
        present = set(new.all())
        if present - set(digests):
            step = NextStep("choose a folder that holds nothing else")
            raise LibraryError(f"{new.address} holds tracks of something else", step)
        with ThreadPoolExecutor(WRITERS) as pool:
            for number, _ in enumerate(pool.map(lambda digest: _copy(old, new, digest), digests)):
                if on_progress:
                    on_progress(Progress("moving tracks", number + 1, len(digests)))
        if address == FOLDER:
            store.remove_setting(TRACKS_SETTING)
        else:
            store.set_setting(TRACKS_SETTING, new.address)
        store.use_tracks(new)
        old.remove_all(list(old.all()))
    return len(digests)


def _copy(old: TrackStore, new: TrackStore, digest: str) -> None:
    try:
        data = old.read(digest)
    except FileNotFoundError as error:
        raise LibraryError(f"the track {digest} is missing", REPAIR) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise LibraryError(f"the track {digest} is damaged", REPAIR)
    new.put(digest, data)
