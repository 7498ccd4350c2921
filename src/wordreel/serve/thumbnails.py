"""Pictures for the page: thumbnails and animated previews of moments, and faces.

All are decoded behind the fence. Thumbnails and previews are cached on disk, faces in memory alone: a library
does not store where in a frame a face was, so its frame is decoded again, the faces in it are detected, and
the one that is most like the look at the person is cut out.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import BrokenMedia, NotMedia
from wordreel.experts.face_detection import DetectedFaces, align_face
from wordreel.ingest.extract import closable
from wordreel.media.types import FrameNeed, Frames, StreamRequest, Window
from wordreel.people.face_groups import centred
from wordreel.types import Float32, Float64
from wordreel.util.lru_cache import LRUCache

SIDE = 180  # pixels of the shorter side
SIDES = (SIDE, 360, 540)  # for screens with one, two and three pixels to a CSS pixel
JPEG_QUALITY, WEBP_QUALITY = 78, 55
PREVIEW_FRAMES = 8
FRAME_MILLISECONDS = 250  # each is shown
LONGEST_PREVIEW = 20.0  # seconds that a preview covers
PRECISION = 0.1  # seconds: how exactly a moment is meant
SPARE = 0.8  # of the bound of the cache on disk is left after clearing up
FACE_SIDE = 360  # pixels of the shorter side, as the faces expert sees it
FACE_MARGIN = 0.35  # of the face's size, around it
CACHED_FACES = 500

Image = NDArray[np.uint8]


class Decoder(Protocol):
    """The part of `wordreel.media.Fence` that pictures need."""

    def run(self, path: Path, request: StreamRequest) -> Iterator[Window]:
        """Decode windows of a file."""
        ...


class FaceExpert(Protocol):
    """The part of the faces expert that crops need."""

    def detect(self, image: Image) -> DetectedFaces:
        """Find the faces of a picture."""
        ...

    def embed(self, faces: Image) -> Float32:
        """Return the vectors of aligned faces."""
        ...


class Thumbnails:
    """Thumbnails and previews of files, by the hash of their bytes."""

    def __init__(self, fence: Decoder, cache: DiskCache) -> None:
        self._fence, self._cache = fence, cache

    def thumb(self, content: str, path: Path, second: float, duration: float, size: int = SIDE) -> bytes:
        """Return a JPEG of the frame at a second, or of the last one before the end.

        `size` is rounded up to a side that is cached.
        """
        start = _rounded(min(second, max(0.0, duration - PRECISION)))
        side = next((cached for cached in SIDES if cached >= size), SIDES[-1])
        return self._cache.get(
            f"thumb {content} {start:.1f} {side}",
            lambda: jpeg(decode_frames(self._fence, path, start, start + PRECISION, 1, side)[0]),
        )

    def preview(self, content: str, path: Path, start: float, end: float, duration: float) -> bytes:
        """Return an animated WebP of a few frames, evenly spaced; of a still picture one frame."""
        first = _rounded(min(start, max(0.0, duration - PRECISION)))
        last = _rounded(min(max(end, first + PRECISION), duration, first + LONGEST_PREVIEW))
        end = max(last, first + PRECISION)
        return self._cache.get(
            f"preview {content} {first:.1f} {last:.1f} {SIDE}",
            lambda: webp(decode_frames(self._fence, path, first, end, PREVIEW_FRAMES, SIDE)),
        )


class DiskCache:
    """Small files in a folder, bounded in size: bytes by key, least recently used first out."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self._max_bytes = folder, max_bytes
        self._lock = threading.Lock()
        self._bytes = max_bytes  # not measured yet: the first write does

    def get(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the bytes under a key, from the folder or computed now; errors of `make` are not cached."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        path = self.folder / digest[:2] / digest[2:]
        with suppress(OSError):
            content = path.read_bytes()
            os.utime(path)
            return content
        content = make()
        self._write(path, content)
        return content

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file; a full or read-only disk costs speed, not the answer."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            passing = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            passing.write_bytes(data)
            passing.replace(path)
            with self._lock:
                self._bytes += len(data)
                if self._bytes > self._max_bytes:
                    self._clear_up()

    def _clear_up(self) -> None:
        """Delete the files that were not used for longest."""
        paths = [path for path in self.folder.rglob("*") if path.is_file()]
        files = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in paths)
        self._bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if self._bytes <= SPARE * self._max_bytes:
                break
            path.unlink(missing_ok=True)
            self._bytes -= size


class FaceCrops:
    """JPEGs of faces by the number of the look."""

    def __init__(self, fence: Decoder, load: Callable[[], FaceExpert]) -> None:
        self._fence, self._load = fence, load
        self._expert: FaceExpert | None = None
        self._lock = threading.Lock()
        self._crops = LRUCache[int, bytes](CACHED_FACES)

    def crop(self, number: int, path: Path, start: float, end: float, vector: Float32) -> bytes:
        """Return a JPEG of the face with this vector in the middle of a look."""
        crop = self._crops.get(number)
        if crop is None:
            second = start + (end - start) // 2
            frame = decode_frames(self._fence, path, second, second + PRECISION, 1, FACE_SIDE)[0]
            with self._lock:  # one network for all requests
                self._expert = self._expert or self._load()
                crop = jpeg(cut_face(frame, self._expert, vector))
            self._crops.put(number, crop)
        return crop

    def forget(self) -> None:
        """Drop all crops."""
        self._crops = LRUCache[int, bytes](CACHED_FACES)


def cut_face(frame: Image, expert: FaceExpert, vector: Float32) -> Image:
    """Return the face of a frame that is most like a vector; the whole frame if none is found."""
    faces = expert.detect(frame)
    if not len(faces):
        return frame
    aligned = np.stack([align_face(frame, points) for points in faces.points])
    best = int((centred(expert.embed(aligned)) @ vector).argmax())
    return np.ascontiguousarray(around(frame, faces.boxes[best]))


def around(frame: Image, box: Float64) -> Image:
    """Return a square round a box, as far as the frame goes."""
    left, top, right, bottom = box
    half = max(right - left, bottom - top) * (0.5 + FACE_MARGIN)
    x, y = (left + right) / 2, (top + bottom) / 2
    height, width = frame.shape[:2]
    columns = slice(max(0, int(x - half)), min(width, int(np.ceil(x + half))))
    rows = slice(max(0, int(y - half)), min(height, int(np.ceil(y + half))))
    return frame[rows, columns]


def decode_frames(
    fence: Decoder, path: Path, start: float, end: float, count: int, side: int
) -> Sequence[Image]:
    """Return so many frames of some seconds of a file, evenly spaced, or fewer."""
    rate = count / (end - start)
    request = StreamRequest((FrameNeed(min(rate, 1000.0), side),), max(0.2, end - start), start, end)
    images: list[Image] = []
    with closing(closable(fence.run(path, request))) as windows:
        for window in windows:
            part = window.parts[0]
            if part is None:
                raise NotMedia("there are no pictures in this file, only sound")
            if isinstance(part, Frames):
                images += list(part.images)
            if len(images) >= count:
                break
    if not images and start > 0:  # the file ends earlier than it says
        return decode_frames(fence, path, 0.0, min(end - start, 1.0), count, side)
    if not images:
        raise BrokenMedia("no picture could be decoded")
    return images[:count]


def jpeg(image: Image) -> bytes:
    """Return `image [height, width, 3]` RGB as JPEG."""
    import cv2

    done, packed = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise BrokenMedia("the picture cannot be packed")
    return bytes(packed.tobytes())


def webp(images: Sequence[Image]) -> bytes:
    """Return frames as an animated WebP; one frame, or a codec without animations, gives a still one."""
    import cv2

    quality = [cv2.IMWRITE_WEBP_QUALITY, WEBP_QUALITY]
    frames = [np.ascontiguousarray(image[:, :, ::-1]) for image in images]
    if len(frames) > 1 and hasattr(cv2, "imencodeanimation"):
        moving = cv2.Animation()
        moving.frames = frames
        moving.durations = [FRAME_MILLISECONDS] * len(frames)
        done, packed = cv2.imencodeanimation(".webp", moving, quality)
        if done:
            return bytes(packed.tobytes())
    done, packed = cv2.imencode(".webp", frames[0], quality)
    if not done:
        raise BrokenMedia("the picture cannot be packed")
    return bytes(packed.tobytes())


def _rounded(second: float) -> float:
    """Round a second: neighbouring moments share their picture."""
    return round(second / PRECISION) * PRECISION
