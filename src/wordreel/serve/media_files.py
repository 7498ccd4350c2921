"""Files of the library, served whole or in part, and only while they are unchanged since they were added.

A path may belong to another file by now, or to a link: links are served only where they lead into one of the
roots. Size, times and inode tell that a file is the one that was added; where they differ (a restored
backup), the hash of its bytes does. The ctime is among them: a mtime can be set to any value.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse
from starlette.staticfiles import NotModifiedResponse
from starlette.types import Receive, Scope, Send

from wordreel.catalogue.files import files_of
from wordreel.catalogue.paths import is_imported
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import MediaError
from wordreel.ingest.extract import content_hash
from wordreel.ingest.plan import resolves_within
from wordreel.media.formats import OpenFile, open_media
from wordreel.media.types import Limits, MediaInfo
from wordreel.serve.problems import Problem
from wordreel.util.lru_cache import LRUCache

CACHED_HASHES = 10_000
DOWNLOAD = "application/octet-stream"
TYPES = {
    "mp4": ("video/mp4", "audio/mp4"),
    "matroska": ("video/webm", "audio/webm"),
    "mpeg-ts": ("video/mp2t", "video/mp2t"),
    "ogg": ("video/ogg", "audio/ogg"),
    "gif": ("image/gif", "image/gif"),
    "mp3": ("audio/mpeg", "audio/mpeg"),
    "wav": ("audio/wav", "audio/wav"),
    "flac": ("audio/flac", "audio/flac"),
    "aac": ("audio/aac", "audio/aac"),
    "jpeg": ("image/jpeg", "image/jpeg"),
    "png": ("image/png", "image/png"),
    "webp": ("image/webp", "image/webp"),
    "bmp": ("image/bmp", "image/bmp"),
}
"""Containers that browsers play; the second type is for files without pictures. Others are downloads."""

WEBM = {"vp8", "vp9", "av1", "opus", "vorbis", ""}


class VerifiedFiles:
    """Finds a file for each content."""

    def __init__(self, store: LibraryStore, roots: Sequence[Path] = ()) -> None:
        self._store, self._roots = store, roots
        self._hashes = LRUCache[tuple[str, FileStamp], str](CACHED_HASHES)

    def path(self, content: str) -> Path:
        """Return a path that holds this content; raise a `Problem` where there is none."""
        changed = False
        for path, stamp in self._files(content):
            try:
                if self._same(content, path, stamp, os.stat(path), path):  # noqa: PTH116
                    return Path(path)
                changed = changed or os.path.realpath(path) == path  # of links nothing is told
            except (OSError, ValueError):
                continue
        raise _changed() if changed else _gone()

    def open(self, content: str) -> tuple[Path, OpenFile]:
        """Return the file, held open: what happens to its name from now on does not matter."""
        path = self.path(content)
        try:
            opened = open_media(path, Limits())
        except MediaError as error:
            raise Problem(410, "gone", f"the file can no longer be read: {error.message}") from error
        try:
            stamp = dict(self._files(content))[str(path)]
            itself = f"/dev/fd/{opened.descriptor}"
            if not self._same(content, str(path), stamp, os.fstat(opened.descriptor), itself):
                raise _gone()
        except BaseException:
            opened.close()
            raise
        return path, opened

    def _files(self, content: str) -> list[tuple[str, FileStamp]]:
        stored = files_of(self._store, content)
        if not stored:
            raise Problem(404, "not_found", "there is no such file in the library (any more)")
        files = [(path, stamp) for path, stamp in stored if not is_imported(path)]
        if not files:
            raise Problem(404, "no_media", "this item was imported without its file")
        return files

    def _same(
        self, content: str, path: str, stamp: FileStamp, status: os.stat_result, readable_at: str
    ) -> bool:
        """Whether a file is unchanged since it was added: by its stamp, or by the hash of its bytes."""
        now = FileStamp.of(status)
        if now.size != stamp.size:
            return False
        if os.path.realpath(path) != path and not resolves_within(path, self._roots):
            return False  # a link that leads out of the folders
        if now == stamp:
            return True
        known = self._hashes.get((path, now))
        if known is None:
            known = content_hash(Path(readable_at))
            self._hashes.put((path, now), known)
        return known == content


def _gone() -> Problem:
    return Problem(410, "gone", "the file is no longer where it was; add its folder again")


def _changed() -> Problem:
    return Problem(410, "changed", "the file has changed since it was added; add its folder again")


def media_type_of(info: MediaInfo) -> str:
    """Return the content type by what the file is, never by its name; an unknown one is a download.

    >>> media_type_of(MediaInfo("video", "mp4", 3.0, video_codec="h264"))
    'video/mp4'
    >>> media_type_of(MediaInfo("video", "avi", 3.0))
    'application/octet-stream'
    """
    codecs = {info.video_codec, info.audio_codec}
    if info.container == "matroska" and not codecs <= WEBM:
        return "video/x-matroska"
    types = TYPES.get(info.container)
    if types is None:
        return DOWNLOAD
    return types[0] if info.has_video or info.kind != "audio" else types[1]


class MediaResponse(FileResponse):
    """Sends a file that is already open, whole or in part, and closes it.

    Starlette opens files by path, which may lead elsewhere by now: it gets the path of the open descriptor.
    """

    chunk_size = 256 * 1024

    def __init__(self, file: OpenFile, info: MediaInfo, content: str, name: str) -> None:
        self._file = file
        kind = media_type_of(info)
        super().__init__(
            f"/dev/fd/{file.descriptor}",
            headers={
                "etag": f'"{content}"',
                "cache-control": "private, max-age=86400",
                "content-security-policy": "default-src 'none'; sandbox",
            },
            media_type=kind,
            filename=name if kind == DOWNLOAD else None,
            stat_result=os.fstat(file.descriptor),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file, or 304 to a client that has it."""
        try:
            if Headers(scope=scope).get("if-none-match") == self.headers["etag"]:
                await NotModifiedResponse(self.headers)(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)
        finally:
            self._file.close()
