"""The bytes of a video, as they were when it was added, whole or in part."""

from __future__ import annotations

import asyncio
import os
from email.utils import formatdate
from urllib.parse import quote

import anyio.to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wordreel.media.files import OpenFile
from wordreel.media.types import MediaInfo
from wordreel.serve.ranges import Unsatisfiable, asked_range

CHUNK = 256 * 1024
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
"""Containers that browsers show; the second is for files without pictures. Others are saved, not shown."""

WEBM = {"vp8", "vp9", "av1", "opus", "vorbis", ""}


def media_type_of(info: MediaInfo) -> str:
    """The content type by what the file is, never by its name; an unknown one is only for saving.

    >>> media_type_of(MediaInfo("video", "mp4", 3.0, video_codec="h264"))
    'video/mp4'
    >>> media_type_of(MediaInfo("video", "avi", 3.0))
    'application/octet-stream'
    """
    codecs = {info.video_codec, info.audio_codec}
    if info.container == "matroska" and not codecs <= WEBM:
        return "video/x-matroska"
    shown_as = TYPES.get(info.container)
    if shown_as is None:
        return DOWNLOAD
    return shown_as[0] if info.has_video or info.kind != "audio" else shown_as[1]


class MediaResponse(Response):
    """Sends an open file and closes it, at its end or when the client goes."""

    def __init__(
        self, file: OpenFile, info: MediaInfo, content: str, name: str, asked: dict[str, str]
    ) -> None:
        self.file = file
        kind = media_type_of(info)
        self.start, self.end, status = 0, file.size, 200
        tag = f'"{content}"'
        headers = {
            "accept-ranges": "bytes",
            "etag": tag,
            "content-type": kind,
            "cache-control": "private, max-age=86400",
            "content-security-policy": "default-src 'none'; sandbox",
            "last-modified": formatdate(os.fstat(file.descriptor).st_mtime, usegmt=True),
        }
        if kind == DOWNLOAD:
            headers["content-disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
        if asked.get("if-none-match") == tag:
            status, self.end = 304, 0
        elif asked.get("if-range", tag) == tag:
            try:
                part = asked_range(asked.get("range"), file.size)
            except Unsatisfiable:
                status, self.end = 416, 0
                headers["content-range"] = f"bytes */{file.size}"
            else:
                if part is not None:
                    status, (self.start, self.end) = 206, part
                    headers["content-range"] = f"bytes {self.start}-{self.end - 1}/{file.size}"
        if status != 304:
            headers["content-length"] = str(self.end - self.start)
        super().__init__(None, status, headers)
        self.raw_headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = asyncio.create_task(_left(receive))
        try:
            head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(head)
            at = self.start if scope["method"] != "HEAD" else self.end
            while at < self.end:
                wanted = min(CHUNK, self.end - at)
                block = await anyio.to_thread.run_sync(os.pread, self.file.descriptor, wanted, at)
                if not block:
                    raise OSError("the file became shorter while it was sent")
                at += len(block)
                part = {"type": "http.response.body", "body": block, "more_body": True}
                await send(part)
                if left.done():  # a player that seeks goes away often; the rest of the file is not read
                    return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            left.cancel()
            self.file.close()


async def _left(receive: Receive) -> None:
    """Comes back when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
