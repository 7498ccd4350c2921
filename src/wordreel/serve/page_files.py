"""The page's own files, out of the package. Read once; a name that was not there then is not there."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
SMALLEST = 512  # bytes; below that compressing gains nothing


@dataclass(frozen=True)
class Asset:
    kind: str
    plain: bytes
    packed: bytes | None
    tag: str


def read_page() -> dict[str, Asset]:
    """Every file of the page by its address; "/" is the page itself."""
    found: dict[str, Asset] = {}
    root = resources.files("wordreel.serve").joinpath("page")
    if root.is_dir():
        _walk(root, "/", found)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def _walk(folder: Traversable, place: str, found: dict[str, Asset]) -> None:
    for entry in folder.iterdir():
        ending = "." + entry.name.rpartition(".")[2]
        if entry.is_dir():
            _walk(entry, f"{place}{entry.name}/", found)
        elif ending in TYPES:
            plain = entry.read_bytes()
            packed = gzip.compress(plain, 9, mtime=0) if len(plain) >= SMALLEST else None
            tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
            found[place + entry.name] = Asset(TYPES[ending], plain, packed, tag)


def respond(asset: Asset, request: Request) -> Response:
    """The file, compressed where the browser can read that; nothing where it has it already."""
    headers = {"etag": asset.tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(None, 304, headers)
    packed = asset.packed if "gzip" in request.headers.get("accept-encoding", "") else None
    if packed is not None:
        headers["content-encoding"] = "gzip"
    body = asset.plain if packed is None else packed
    return Response(body, 200, {**headers, "content-length": str(len(body))}, asset.kind)
