"""Copy a library to another folder while it is in use, and bring it back.

A backup is a library folder without caches: `catalogue.sqlite`, `tracks/`, `models/`. Track files are named
after their bytes, so a second backup to the same folder copies only what is new. The catalogue is replaced
last and old tracks are deleted after that: a backup that is stopped leaves the previous one as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from wordreel.catalogue.connection import NAME
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import STAGING, TRACKS_SETTING, TrackFiles, TrackStore
from wordreel.errors import LibraryError, NextStep
from wordreel.progress import Progress, ProgressCallback
from wordreel.util.atomic import atomic_write, make_dir, sync_dir, sync_file, write_and_sync

MANIFEST = "backup.json"
MODELS = "models"
IDENTITY = "library id"  # of the settings
ROUNDS = 20  # snapshots that are tried while somebody removes videos
UNFINISHED = ".new"


@dataclass(frozen=True)
class BackupReport:
    """What a backup or a restore did. `damaged` are tracks whose bytes are not those they are named after."""

    path: str
    tracks: int
    copied: int
    bytes: int
    damaged: tuple[str, ...] = ()


def backup(
    store: LibraryStore, target: str | Path, on_progress: ProgressCallback | None = None
) -> BackupReport:
    """Copy a library to `target`, an empty folder or one with an earlier backup of the same library.

    Others may search, add and remove meanwhile: the copy is the library as of one moment. A damaged track is
    reported, not copied, and never replaces an undamaged copy.

    Raises:
        LibraryError: The folder holds something else or cannot be written, or the disk is full.
    """
    folder = Path(target).expanduser().absolute()
    if _same(folder, store.path) or store.path in folder.parents:
        raise LibraryError(f"{folder} is inside the library", NextStep("choose a folder on another disk"))
    _check_target(folder, identity(store))
    try:
        return _backup(store, folder, on_progress)
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _backup(store: LibraryStore, folder: Path, on_progress: ProgressCallback | None) -> BackupReport:
    files = TrackFiles(folder / "tracks")
    make_dir(folder)
    fresh = folder / f"{NAME}{UNFINISHED}"
    if not (folder / MANIFEST).exists():  # first, so that a first backup that was stopped is recognised
        _write_manifest(folder, {"library": identity(store), "finished": False})
    make_dir(files.staging)
    sizes: dict[str, int | None] = {}
    for _ in range(ROUNDS):
        wanted = _snapshot(store, fresh)
        found = _copy_tracks("backup", store.track_files, files, wanted, on_progress)
        sizes |= found
        # What is not there was removed since the snapshot, or is lost: the next snapshot tells.
        if None not in found.values() or wanted == store.track_names():
            break
    lost = [digest for digest in sorted(wanted) if not files.path(digest).is_file()]
    _copy_models(store.path / MODELS, folder / MODELS)
    fresh.replace(folder / NAME)
    sync_dir(folder)
    _write_manifest(
        folder,
        {"library": identity(store), "finished": True, "tracks": len(wanted), "damaged": lost},
    )
    files.remove_all([digest for digest in files.all() if digest not in wanted])
    copied = [size for size in sizes.values() if size]
    return BackupReport(str(folder), len(wanted), len(copied), sum(copied), tuple(lost))


def restore(
    source: str | Path, target: str | Path, on_progress: ProgressCallback | None = None
) -> BackupReport:
    """Copy a backup to `target`, which must not exist or be empty; every track is checked on the way.

    The library appears whole or not at all.
    """
    folder, origin = Path(target).expanduser().absolute(), Path(source).expanduser().absolute()
    _check_backup(origin)
    if folder.exists() and any(folder.iterdir()):
        raise LibraryError(
            f"{folder} is not empty", NextStep("move it away, or restore to another folder", "restore BACKUP")
        )
    staging = folder.with_name(f".{folder.name}{UNFINISHED}")
    shutil.rmtree(staging, ignore_errors=True)  # of a restore that was stopped
    try:
        make_dir(staging / "tracks" / STAGING)
        make_dir(staging / "cache")
        write_and_sync(staging / NAME, (origin / NAME).read_bytes())  # a plain file: a backup has no log
        wanted = _named_in(staging / NAME)
        old, new = TrackFiles(origin / "tracks"), TrackFiles(staging / "tracks")
        sizes = _copy_tracks("restore", old, new, wanted, on_progress)
        _copy_models(origin / MODELS, staging / MODELS)
        sync_dir(staging)
        if folder.exists():
            folder.rmdir()
        staging.rename(folder)
        sync_dir(folder.parent)
    except OSError as error:
        raise _cannot_write(folder, error) from error
    copied = [size for size in sizes.values() if size]
    damaged = tuple(digest for digest, size in sizes.items() if not size)
    return BackupReport(str(folder), len(wanted), len(copied), sum(copied), damaged)


def _snapshot(store: LibraryStore, path: Path) -> set[str]:
    """Copy the catalogue as of one moment, without its log, and flush it; the tracks that it names.

    The copy has its tracks beside it, wherever those of the library are.
    """
    path.unlink(missing_ok=True)
    store.catalogue.copy_to(path)
    if store.setting(TRACKS_SETTING) is not None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM settings WHERE name = ?", (TRACKS_SETTING,))
        sync_file(path)
    return _named_in(path)


def _named_in(path: Path) -> set[str]:
    """Return the track files that a catalogue names."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        rows = connection.execute("SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL").fetchall()
        return {str(digest) for (digest,) in rows}
    except sqlite3.Error as error:
        raise LibraryError(f"{path} is damaged ({error})", NextStep("use another backup")) from error
    finally:
        connection.close()


def _copy_tracks(
    stage: str,
    source: TrackStore,
    target: TrackFiles,
    wanted: Iterable[str],
    on_progress: ProgressCallback | None,
) -> dict[str, int | None]:
    """Copy the tracks that are not there yet; return the size of each, 0 if damaged, None if missing."""
    sizes: dict[str, int | None] = {}
    names = sorted(wanted)
    for number, digest in enumerate(names, start=1):
        if not target.exists(digest):
            try:
                data = source.read(digest)
                sound = hashlib.sha256(data).hexdigest() == digest
                sizes[digest] = len(data) if sound else 0
                if sound:
                    target.put(digest, data)
            except FileNotFoundError:
                sizes[digest] = None
        if on_progress is not None:
            on_progress(Progress(stage, number, len(names)))
    return sizes


def _copy_models(source: Path, target: Path) -> None:
    """Copy the checkpoints that are not there yet; a checkpoint's folder never changes."""
    if not source.is_dir():
        return
    make_dir(target)
    for folder in source.glob("[!.]*"):
        if (target / folder.name).is_dir():
            continue
        fresh = target / f"{UNFINISHED}-{folder.name}"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            shutil.copytree(folder, fresh)
        except FileNotFoundError:  # removed meanwhile
            shutil.rmtree(fresh, ignore_errors=True)
            continue
        for path in (fresh, *fresh.rglob("*")):
            sync_file(path)
        fresh.rename(target / folder.name)
    sync_dir(target)


def identity(store: LibraryStore) -> str:
    """Return what tells libraries apart, wherever they are and whatever happens to their contents."""
    known = store.setting(IDENTITY)
    if known is None and store.read_only:
        return f"path:{store.path}"
    if known is None:  # not `set_setting`: somebody may be adding, and this need not wait for the end of it
        sql = "INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
        store.catalogue.run(sql, IDENTITY, uuid.uuid4().hex)
        known = store.setting(IDENTITY)
    return str(known)


def _check_target(folder: Path, identity: str) -> None:
    begun = folder / f"{MANIFEST}{UNFINISHED}"  # of a first backup that was stopped at once
    if not folder.exists() or (folder.is_dir() and set(folder.iterdir()) <= {begun}):
        return
    manifest = _read_manifest(folder)
    if manifest is None:
        raise LibraryError(
            f"{folder} is neither empty nor a backup", NextStep("choose an empty folder", "backup FOLDER")
        )
    if manifest.get("library") != identity:
        raise LibraryError(
            f"{folder} is a backup of another library",
            NextStep("choose another folder", "backup FOLDER"),
        )


def _check_backup(folder: Path) -> None:
    manifest = _read_manifest(folder)
    if manifest is None or not (folder / NAME).is_file():
        raise LibraryError(
            f"there is no finished backup at {folder}", NextStep("make one", "backup FOLDER -L LIBRARY")
        )


def _read_manifest(folder: Path) -> dict[str, object] | None:
    try:
        values = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def _write_manifest(folder: Path, values: dict[str, object]) -> None:
    atomic_write(folder / MANIFEST, json.dumps(values, indent=1).encode())


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _cannot_write(folder: Path, error: OSError) -> LibraryError:
    return LibraryError(
        f"cannot write to {folder}: {error.strerror or error}",
        NextStep("free some space or choose another folder, and run the same command again"),
    )
