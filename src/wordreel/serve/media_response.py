"""The bytes of a video, as they were when it was added, whole or in part."""

from __future__ import annotations

import os
import re

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import Message, Receive, Scope, Send

from wordreel.media.files import OpenFile
from wordreel.media.types import MediaInfo

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


def media_type_of(info: MediaInfo) -> str:
    """The content type by what the file is, never by its name; an unknown one is a download.

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


RANGE = re.compile(r"bytes=\s*([0-9]{0,20})-([0-9]{0,20})\s*")


class MediaResponse(FileResponse):
    """Sends a file that is already open, and closes it.

    Starlette opens files by path, which may lead elsewhere by now: it gets the path of the open descriptor.
    Of `Range` headers only one range of bytes is passed on to it: it answers 400 to what is none, where
    RFC 9110 says to ignore the header, and several ranges at once can be made expensive.
    """

    chunk_size = 256 * 1024

    def __init__(self, file: OpenFile, info: MediaInfo, content: str, name: str) -> None:
        self._file: OpenFile | None = file
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
        async def send_and_release(message: Message) -> None:
            if message["type"] == "http.response.body":
                self.close()  # Starlette has its own descriptor of the same file now
            await send(message)

        headers = Headers(scope=scope)
        try:
            if headers.get("if-none-match") == self.headers["etag"]:
                fields = {name: self.headers[name] for name in ("etag", "cache-control", "last-modified")}
                await Response(None, 304, fields)(scope, receive, send)
            else:
                await super().__call__(_with_one_range(scope, headers), receive, send_and_release)
        finally:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _with_one_range(scope: Scope, headers: Headers) -> Scope:
    """The scope without a `Range` header that is to be ignored."""
    match = RANGE.fullmatch(headers.get("range", ""))
    if match is not None:
        first, last = match.groups()
        if (first or last) and not (first and last and int(last) < int(first)):
            return scope
    return {**scope, "headers": [(name, value) for name, value in scope["headers"] if name != b"range"]}
