"""Pictures of faces, cut out of a frame when they are asked for. They are cached in memory alone.

A library does not store where in a frame a face was: the frame is decoded behind the fence, its faces are
detected again, and the one that is most like the look at the person is cut out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import BrokenMedia
from wordreel.experts.face_detection import DetectedFaces, align_face
from wordreel.ingest.extract import closable
from wordreel.media.types import FrameNeed, Frames
from wordreel.media.window_reader import StreamRequest
from wordreel.people.face_spans import centred
from wordreel.serve.thumbnails import Decoder, jpeg
from wordreel.types import Float32, Float64
from wordreel.util.lru_cache import LRUCache

SIDE = 360  # pixels of the shorter side, as the faces expert sees it
MARGIN = 0.35  # of the face's size, around it
CACHED = 500

Image = NDArray[np.uint8]


class FaceExpert(Protocol):
    """The part of the faces expert that crops need."""

    def detect(self, image: Image) -> DetectedFaces: ...
    def embed(self, faces: Image) -> Float32: ...


class FaceCrops:
    """JPEGs of faces by the number of the look."""

    def __init__(self, fence: Decoder, load: Callable[[], FaceExpert]) -> None:
        self._fence, self._load = fence, load
        self._expert: FaceExpert | None = None
        self._lock = threading.Lock()
        self._crops = LRUCache[int, bytes](CACHED)

    def crop(self, number: int, path: Path, start: float, end: float, vector: Float32) -> bytes:
        """The face with this vector in the middle of a look."""
        known = self._crops.get(number)
        if known is None:
            frame = self._frame(path, start + np.floor((end - start) / 2))
            with self._lock:  # one network for all requests
                self._expert = self._expert or self._load()
                known = jpeg(cut_face(frame, self._expert, vector))
            self._crops.put(number, known)
        return known

    def forget(self) -> None:
        """Drop all crops."""
        self._crops = LRUCache[int, bytes](CACHED)

    def _frame(self, path: Path, second: float) -> Image:
        request = StreamRequest((FrameNeed(10.0, SIDE),), 0.2, second, second + 0.1)
        with closing(closable(self._fence.run(path, request))) as windows:
            for window in windows:
                part = window.parts[0]
                if isinstance(part, Frames) and len(part):
                    image: Image = part.images[0]
                    return image
        raise BrokenMedia("no picture could be decoded")


def cut_face(frame: Image, expert: FaceExpert, vector: Float32) -> Image:
    """The face of a frame that is most like a vector; the whole frame if none is found."""
    faces = expert.detect(frame)
    if not len(faces):
        return frame
    aligned = np.stack([align_face(frame, points) for points in faces.points])
    best = int((centred(expert.embed(aligned)) @ vector).argmax())
    return np.ascontiguousarray(around(frame, faces.boxes[best]))


def around(frame: Image, box: Float64) -> Image:
    """A square round a box, as far as the frame goes."""
    left, top, right, bottom = box
    half = max(right - left, bottom - top) * (0.5 + MARGIN)
    x, y = (left + right) / 2, (top + bottom) / 2
    height, width = frame.shape[:2]
    columns = slice(max(0, int(x - half)), min(width, int(np.ceil(x + half))))
    rows = slice(max(0, int(y - half)), min(height, int(np.ceil(y + half))))
    return frame[rows, columns]
