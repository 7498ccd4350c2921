"""The page's own files, out of the package."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Scope

SMALLEST_GZIP = 512  # bytes; below that compressing gains nothing
TYPES = {".js": "text/javascript"}  # which Python 3.11 calls application/javascript


class PageFiles(StaticFiles):
    """Static files whose ETag is the hash of their bytes.

    Starlette's own is computed from size and time, which installers set to the same value in every version.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file of the page; a browser at any other address gets the page, which says so."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            wants_page = "text/html" in Headers(scope=scope).get("accept", "")
            if error.status_code != 404 or not wants_page or path.startswith(("api/", "media/")):
                raise
            full_path, status = self.lookup_path("index.html")
            if status is None:
                raise
            return self.file_response(full_path, status, scope, 404)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return a file with its ETag, or 304 to a browser that has it."""
        path = Path(full_path)
        tag = _etag(path, stat_result.st_size, stat_result.st_mtime_ns)
        response = FileResponse(
            path,
            status_code,
            {"etag": f'"{tag}"', "cache-control": "no-cache", "vary": "Accept-Encoding"},
            TYPES.get(path.suffix),
            stat_result=stat_result,
        )
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response


def page_files() -> ASGIApp:
    """Return the page and everything it loads, compressed for browsers that accept that."""
    return GZipMiddleware(PageFiles(packages=[("wordreel.serve", "page")], html=True), SMALLEST_GZIP)


@lru_cache(256)
def _etag(path: Path, size: int, mtime_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]
