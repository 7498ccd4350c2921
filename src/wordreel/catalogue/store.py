"""The library on disk, as the rest of wordreel sees it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from wordreel.catalogue.captions import read_captions
from wordreel.catalogue.connection import NAME, Catalogue
from wordreel.catalogue.lock import may_have_died, writer_lock
from wordreel.catalogue.passes import is_version, quick_fingerprint
from wordreel.catalogue.paths import IMPORTED, from_blob, library_path, to_blob
from wordreel.catalogue.records import (
    CaptionRow,
    Failure,
    MatchedLines,
    Stats,
    StoredClip,
    StoredFile,
    TrackRow,
    Video,
    WordRow,
)
from wordreel.catalogue.remove import (
    delete_unreferenced,
    drop_tracks,
    remove_missing,
    remove_paths,
    sweep,
)
from wordreel.catalogue.tracks import STAGING, TRACKS_SETTING, TrackFiles, TrackStore, open_tracks
from wordreel.errors import LibraryError, LibraryReadOnly, NextStep
from wordreel.media.types import MediaInfo
from wordreel.types import Absent, Track
from wordreel.util.atomic import make_dir

INFO = (
    "kind, container, duration, width, height, rotation, frame_rate, video_codec, audio_codec, sample_rate, "
    "recorded"
)
_ANALYSIS = (
    "CASE WHEN EXISTS (SELECT 1 FROM quick_contents q WHERE q.content = c.content) "
    "THEN 'quick' ELSE 'thorough' END"
)
_CLIP = "id, content, start, end, whole, shot"
_TRACK = "content, expert, fingerprint, state = 'present', hash, reason, rows, dim"
_HAS_FILE = "EXISTS (SELECT 1 FROM files f WHERE f.content = c.content)"
MODEL_SETTING = "model"
SOURCE_SETTING = "backbone_source"  # where the backbone in use came from: another machine needs it
REPLICA = "replica of"  # of a replica: {"library", "generation"} as JSON
COPY_IT = NextStep("copy the library to a disk that can be written")
_FILE = "path, content, size, mtime_ns, added_at, captured, captured_from"


class LibraryStore:
    """A library on disk: `catalogue.sqlite`, `tracks/`, `cache/`, `models/` and `lock` in one folder.

    Threads may share it. One process writes at a time (see `writing`); readers never wait.

    >>> import tempfile
    >>> with LibraryStore.create_or_open(tempfile.mkdtemp()) as store:
    ...     store.stats().files
    0
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self.cache = self.path / "cache"
        existed = (self.path / NAME).is_file()
        self.catalogue = Catalogue(self.path / NAME)
        self.use_tracks(open_tracks(self.setting(TRACKS_SETTING) or str(self.path / "tracks")))
        self._writer: int | None = None
        if existed:  # a new catalogue names no tracks: none must be deleted for that
            self._recover()

    def _recover(self) -> None:
        """Sweep up after a writer that died, unless somebody is writing.

        What is in an object store waits for the next writer: to look there takes long.
        """
        local = isinstance(self.track_files, TrackFiles)
        if local and not self.read_only and may_have_died(self.path / "lock"):
            with suppress(LibraryError, OSError), self.writing():
                pass

    @classmethod
    def create_or_open(cls, path: str | Path) -> LibraryStore:
        """Open the library in a folder, creating it first if needed.

        Raises:
            LibraryError: The folder cannot be written, or a newer wordreel wrote the library.
        """
        folder = Path(path)
        try:
            make_dir(folder)
            make_dir(folder / "tracks" / STAGING)
            make_dir(folder / "cache")
        except OSError as error:
            raise LibraryError(
                f"cannot create a library at {folder}: {error.strerror}", NextStep("choose another folder")
            ) from error
        return cls(folder)

    @classmethod
    def open(cls, path: str | Path) -> LibraryStore:
        """Open the library in a folder; a LibraryError if there is none."""
        folder = Path(path)
        if not (folder / NAME).is_file():
            raise LibraryError(
                f"there is no library at {folder}",
                NextStep(
                    "create one from a folder of videos",
                    command="add FOLDER",
                    page="Library",
                ),
            )
        return cls(folder) if not os.access(folder, os.W_OK) else cls.create_or_open(folder)

    def use_tracks(self, tracks: TrackStore) -> None:
        """Read and write tracks there."""
        self.track_files = tracks
        self.load_track: Callable[[str], Track] = tracks.load

    @property
    def read_only(self) -> bool:
        """Whether the library can only be read: its disk cannot be written, or it is somebody else's."""
        return self.catalogue.read_only

    def close(self) -> None:
        """Close the catalogue."""
        self.catalogue.close()

    def __enter__(self) -> LibraryStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock. The same thread may enter again; anyone else gets `LibraryBusy`."""
        if self._writer == threading.get_ident():
            yield
            return
        if self.read_only:
            raise LibraryReadOnly(f"{self.path} cannot be written", COPY_IT)
        with writer_lock(self.path / "lock") as previous_died:
            self._writer = threading.get_ident()
            try:
                if previous_died:
                    sweep(self.catalogue, self.track_files)
                yield
            finally:
                self._writer = None

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Change what a person typed, in one transaction and without the write lock.

        A library that cannot be written, or that follows another one, refuses.
        """
        if self.read_only:
            raise LibraryReadOnly(f"{self.path} cannot be written", COPY_IT)
        self.refuse_replica()
        with self.catalogue.transaction():
            yield

    @property
    def is_replica(self) -> bool:
        """Whether the library follows one that is published."""
        return self.setting(REPLICA) is not None

    def refuse_replica(self) -> None:
        """Raise a `LibraryReadOnly` if the library follows another one."""
        if self.is_replica:
            step = NextStep("change the library that it follows")
            raise LibraryReadOnly(f"{self.path} is a replica of a published library", step)

    # Settings

    def setting(self, name: str) -> str | None:
        """Return the value of a setting; None if it was never set."""
        row = self.catalogue.one("SELECT value FROM settings WHERE name = ?", name)
        return str(row[0]) if row else None

    def set_setting(self, name: str, value: str) -> None:
        """Set a setting, atomically."""
        with self.writing():
            self.catalogue.run(
                "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                name,
                value,
            )

    def remove_setting(self, name: str) -> None:
        """Forget a setting, if it was ever set."""
        with self.writing():
            self.catalogue.run("DELETE FROM settings WHERE name = ?", name)

    # Contents

    def files(self) -> list[StoredFile]:
        """Return every file, by path."""
        rows = self.catalogue.rows(f"SELECT {_FILE} FROM files ORDER BY path")  # noqa: S608
        return [StoredFile(from_blob(path), *rest) for path, *rest in rows]

    def file(self, path: str | os.PathLike[str]) -> StoredFile | None:
        """Return the file at a path; None if it is not in the library."""
        key = to_blob(library_path(path))
        row = self.catalogue.one(f"SELECT {_FILE} FROM files WHERE path = ?", key)  # noqa: S608
        return StoredFile(from_blob(row[0]), *row[1:]) if row else None

    def required_file(self, path: str | os.PathLike[str]) -> StoredFile:
        """Return a file of the library; raise a `LibraryError` if it is not in it."""
        file = self.file(path)
        if file is None:
            step = NextStep("add it", f"add {os.fspath(path)}", "Library")
            raise LibraryError(f"{os.fspath(path)} is not in the library", step)
        return file

    def videos(self) -> list[Video]:
        """Return every content that some file holds, by hash, with all its paths."""
        return [video for video in self._videos("") if video.paths]

    def video(self, content: str) -> Video | None:
        """Return a video with its paths; None if the library does not have it."""
        return next(iter(self._videos("WHERE content = ?", content)), None)

    def _videos(self, where: str, *values: str) -> list[Video]:
        paths: dict[str, list[str]] = {}
        dates: dict[str, tuple[str, str]] = {}
        query = f"SELECT content, path, captured, captured_from FROM files {where} ORDER BY path"  # noqa: S608
        for content, path, *date in self.catalogue.rows(query, *values):
            paths.setdefault(content, []).append(from_blob(path))
            dates.setdefault(content, (date[0], date[1]))
        query = f"SELECT content, size, {_ANALYSIS}, {INFO} FROM contents c {where} ORDER BY content"  # noqa: S608
        return [
            Video(
                content,
                MediaInfo(*info),
                tuple(paths.get(content, ())),
                size,
                analysis,
                *dates.get(content, ()),
            )
            for content, size, analysis, *info in self.catalogue.rows(query, *values)
        ]

    def info(self, content: str) -> MediaInfo | None:
        """Return what is known of a content as media; None if the library does not have it."""
        row = self.catalogue.one(f"SELECT {INFO} FROM contents WHERE content = ?", content)  # noqa: S608
        return MediaInfo(*row) if row else None

    def has_content_of_size(self, size: int) -> bool:
        """Return whether some content has this many bytes.

        Only then can a new file be a known one.
        """
        return self.catalogue.one("SELECT 1 FROM contents WHERE size = ? LIMIT 1", size) is not None

    def tracks(self, content: str | None = None) -> list[TrackRow]:
        """Return the tracks of one content (or of all), without their values."""
        return [_track(row) for row in self._select(_TRACK, "tracks", content)]

    def tracks_of(self, contents: Sequence[str]) -> list[TrackRow]:
        """Return the track rows of several contents, unordered."""
        query = f"SELECT {_TRACK} FROM tracks WHERE content IN ?"  # noqa: S608
        return [_track(row) for row in self.catalogue.rows_in(query, contents)]

    def track_names(self) -> set[str]:
        """Return the names of all tracks that the catalogue needs."""
        rows = self.catalogue.rows("SELECT DISTINCT hash FROM tracks WHERE hash IS NOT NULL")
        return {str(name) for (name,) in rows}

    def track(self, content: str, expert: str) -> Track | Absent | None:
        """Return the output of one expert on one content; None if it was never run."""
        row = self.catalogue.one(
            "SELECT hash, reason FROM tracks WHERE content = ? AND expert = ?", content, expert
        )
        if row is None:
            return None
        return Absent(row[1]) if row[0] is None else self.load_track(row[0])

    def present_tracks(
        self,
        contents: Sequence[str],
        experts: Sequence[str],
        fingerprints: Mapping[str, str] | None = None,
    ) -> list[dict[str, Track]]:
        """Return the present tracks by these experts, of each content (see `track_hashes`)."""
        hashes = self.track_hashes(contents, experts, fingerprints)
        return [{name: self.load_track(digest) for name, digest in named.items()} for named in hashes]

    def track_hashes(
        self,
        contents: Sequence[str],
        experts: Sequence[str],
        fingerprints: Mapping[str, str] | None = None,
    ) -> list[dict[str, str]]:
        """Return the names of the present tracks by these experts, of each content.

        Of an expert with an entry in `fingerprints`, only a track by that version counts, of all frames or of
        key frames alone.
        """
        wanted = fingerprints or {}
        held: dict[str, dict[str, str]] = {content: {} for content in contents}
        for row in self.tracks_of(list(held)):
            if row.hash is not None and is_version(row.fingerprint, wanted.get(row.expert)):
                held[row.content][row.expert] = row.hash
        return [{name: held[one][name] for name in experts if name in held[one]} for one in contents]

    def clips(self, content: str | None = None) -> list[StoredClip]:
        """Return the clips of one content (or of all that have a file), in order of id."""
        chosen, values = ("c.content = ?", (content,)) if content else ("1", ())
        rows = self.catalogue.rows(
            f"SELECT {_CLIP} FROM clips c WHERE {chosen} AND {_HAS_FILE} ORDER BY id",  # noqa: S608
            *values,
        )
        return [_clip(row) for row in rows]

    def clip(self, clip: int) -> StoredClip | None:
        """Return a clip by its id; None if there is none."""
        row = self.catalogue.one(f"SELECT {_CLIP} FROM clips WHERE id = ?", clip)  # noqa: S608
        return _clip(row) if row else None

    def clips_by_id(self, ids: Sequence[int]) -> list[StoredClip]:
        """Return the clips with these ids that there are, in any order."""
        rows = self.catalogue.rows_in(f"SELECT {_CLIP} FROM clips WHERE id IN ?", ids)  # noqa: S608
        return [_clip(row) for row in rows]

    def clip_ids(self, after: int = 0) -> list[int]:
        """Return the ids of all clips that have a file, in order, or of those after one."""
        query = f"SELECT id FROM clips c WHERE id > ? AND {_HAS_FILE} ORDER BY id"  # noqa: S608
        return [i for (i,) in self.catalogue.rows(query, after)]

    def has_clips(self) -> bool:
        """Return whether some clip has a file."""
        return self.catalogue.one(f"SELECT 1 FROM clips c WHERE {_HAS_FILE} LIMIT 1") is not None  # noqa: S608

    def words(
        self, content: str, expert: str | None = None, start: float | None = None, end: float | None = None
    ) -> list[WordRow]:
        """Spoken and on-screen words of a content, or of the part that overlaps `[start, end)`."""
        rows = self.catalogue.rows(
            """SELECT content, expert, start, end, text, score FROM words
               WHERE content = ? AND (? IS NULL OR expert = ?) AND (? IS NULL OR end > ? OR start >= ?)
                 AND (? IS NULL OR start < ?) ORDER BY start, end, expert, id""",
            content, expert, expert, start, start, start, end, end,
        )  # fmt: skip
        return [WordRow(*row) for row in rows]

    def find_lines(self, terms: Sequence[str], limit: int = 10_000) -> MatchedLines:
        """Return lines of words, tags and notes with any of the terms, newest first, at most `limit` of each.

        Not ranked, and without their text: reading that of ten thousand lines takes longer than finding them.
        """
        expression = match_expression(terms)
        if not expression:
            return MatchedLines()
        lines = []
        for columns, index, table in (
            ("-t.id, content, start, end", "annotations_fts", "annotations"),
            ("t.id, content, start, end", "words_fts", "words"),
        ):
            lines += self.catalogue.rows(
                f"""SELECT {columns} FROM {index} JOIN {table} t ON t.id = {index}.rowid
                    WHERE {index} MATCH ? ORDER BY {index}.rowid DESC LIMIT ?""",  # noqa: S608
                expression,
                limit,
            )
        return MatchedLines(*zip(*lines, strict=True))

    def read_lines(self, ids: Sequence[int]) -> dict[int, WordRow]:
        """Return the lines with these ids that there are, in order: tags and notes, then words.

        The expert of a tag is "tag", that of a note "note".
        """
        found: dict[int, WordRow] = {}
        for sign, table, columns in (
            (-1, "annotations", "content, kind, start, end, text, 1.0"),
            (1, "words", "content, expert, start, end, text, score"),
        ):
            some = [abs(line) for line in ids if line * sign > 0]
            query = f"SELECT id, {columns} FROM {table} WHERE id IN ? ORDER BY id"  # noqa: S608
            rows = self.catalogue.rows_in(query, some)
            found |= {sign * line: WordRow(*row) for line, *row in rows}
        return found

    def captions(
        self, split: str | None = None, dataset: str | None = None, content: str | None = None
    ) -> list[CaptionRow]:
        """Return captions of items in the order of the dataset.

        A split, dataset or content, if given, limits which.
        """
        return read_captions(self.catalogue, split, dataset, content)

    def failures(self) -> list[Failure]:
        """Return the files that could not be added, by path."""
        rows = self.catalogue.rows(
            "SELECT path, reason, size, mtime_ns, failed_at FROM failures ORDER BY path"
        )
        return [Failure(from_blob(path), *rest) for path, *rest in rows]

    def stats(self) -> Stats:
        """Count what the library holds."""
        kinds = {
            k: (n, s)
            for k, n, s in self.catalogue.rows(
                "SELECT kind, count(*), sum(duration) FROM contents GROUP BY kind"
            )
        }
        experts = {
            name: (int(here), int(n - here))
            for name, n, here in self.catalogue.rows(
                "SELECT expert, count(*), sum(state = 'present') FROM tracks GROUP BY expert ORDER BY expert"
            )
        }
        return Stats(
            files=self._count("files"),
            contents=self._count("contents"),
            videos=kinds.get("video", (0, 0))[0],
            sounds=kinds.get("audio", (0, 0))[0],
            images=kinds.get("image", (0, 0))[0],
            seconds=float(sum(seconds for _, seconds in kinds.values())),
            media_bytes=int((self.catalogue.one("SELECT coalesce(sum(size), 0) FROM files") or (0,))[0]),
            clips=self._count("clips"),
            words=self._count("words"),
            failures=self._count("failures"),
            quick=self._count("quick_contents"),
            experts=experts,
            track_bytes=self.track_files.bytes(),
            catalogue_bytes=sum(p.stat().st_size for p in self.path.glob(f"{NAME}*")),
            cache_bytes=sum(p.stat().st_size for p in self.cache.rglob("*") if p.is_file()),
        )

    def expert_names(self) -> set[str]:
        """Return every expert that was run on some content, also where its output is absent."""
        return {str(name) for (name,) in self.catalogue.rows("SELECT DISTINCT expert FROM tracks")}

    def track_dims(self) -> dict[str, set[int]]:
        """Return the feature dimensions of every expert with tracks; several after an expert changed."""
        dims: dict[str, set[int]] = {}
        query = "SELECT DISTINCT expert, dim FROM tracks WHERE state = 'present'"
        for expert, dim in self.catalogue.rows(query):
            dims.setdefault(expert, set()).add(dim)
        return dims

    def has_tracks(self, experts: Sequence[str]) -> bool:
        """Return whether any content has a track of one of these experts."""
        marks = ",".join("?" * len(experts))
        row = self.catalogue.one(
            f"SELECT 1 FROM tracks WHERE state = 'present' AND expert IN ({marks}) LIMIT 1",  # noqa: S608
            *experts,
        )
        return row is not None

    def has_track_by(self, expert: str, fingerprint: str) -> bool:
        """Return whether any content was given to this version of an expert.

        Contents count where its output is absent, too.
        """
        query = "SELECT 1 FROM tracks WHERE expert = ? AND fingerprint IN (?, ?) LIMIT 1"
        return self.catalogue.one(query, expert, fingerprint, quick_fingerprint(fingerprint)) is not None

    def count_without(self, expert: str) -> int:
        """Count the contents with a file that were never given to an expert."""
        row = self.catalogue.one(
            f"""SELECT COUNT(*) FROM contents c WHERE {_HAS_FILE} AND NOT EXISTS (
                SELECT 1 FROM tracks t WHERE t.content = c.content AND t.expert = ?)""",  # noqa: S608
            expert,
        )
        return int(row[0]) if row else 0

    def only_imported(self) -> int:
        """Return the number of items if all were imported from datasets, 0 otherwise."""
        low, high = IMPORTED.encode(), IMPORTED.encode() + b"\xff"
        if self.catalogue.one("SELECT 1 FROM files WHERE path < ? OR path >= ? LIMIT 1", low, high):
            return 0
        return self._count("files")

    def data_version(self) -> int:
        """Return a number that changes when another connection writes to the catalogue."""
        row = self.catalogue.one("PRAGMA data_version")
        return int(row[0]) if row else 0

    def version(self) -> tuple[int, int]:
        """Return numbers that change when this store or anybody else writes to the catalogue."""
        return self.data_version(), self.catalogue.changes()

    # Removing

    def remove(self, paths: Sequence[str | os.PathLike[str]], forget: bool = False) -> list[str]:
        """Remove files, and all files below folders; returns their paths. The media are not touched.

        Tags and notes come back with the same content, unless `forget`.
        """
        return self._remove(lambda: remove_paths(self.catalogue, paths), forget)

    def remove_missing(self, forget: bool = False) -> list[str]:
        """Remove every file that is gone from its folder; returns their paths."""
        return self._remove(lambda: remove_missing(self.catalogue), forget)

    def _remove(self, remove: Callable[[], list[str]], forget: bool) -> list[str]:
        with self.writing():
            with self.catalogue.transaction():
                gone = remove()
                hashes = delete_unreferenced(self.catalogue, forget)
            drop_tracks(self.catalogue, self.track_files, hashes)
        return gone

    def _select(self, columns: str, table: str, content: str | None) -> list[tuple[Any, ...]]:
        where, values = ("WHERE content = ?", (content,)) if content else ("", ())
        return self.catalogue.rows(f"SELECT {columns} FROM {table} {where} ORDER BY 1, 2", *values)  # noqa: S608

    def _count(self, table: str) -> int:
        row = self.catalogue.one(f"SELECT count(*) FROM {table}")  # noqa: S608
        return int(row[0]) if row else 0


def _track(row: tuple[Any, ...]) -> TrackRow:
    content, expert, fingerprint, present, *rest = row
    return TrackRow(content, expert, fingerprint, bool(present), *rest)


def _clip(row: tuple[Any, ...]) -> StoredClip:
    return StoredClip(row[0], row[1], row[2], row[3], bool(row[4]), row[5])


def match_expression(terms: Sequence[str]) -> str:
    """Return an FTS5 query for any of the terms as plain text, whatever characters they contain.

    A term of several words is a phrase.

    >>> match_expression(["dog", 'a "b" OR'])
    '"dog" OR "a ""b"" OR"'
    """
    clean = [t.replace("\x00", " ").encode("utf-8", "replace").decode().replace('"', '""') for t in terms]
    return " OR ".join(f'"{t}"' for t in clean if any(c.isalnum() for c in t))
