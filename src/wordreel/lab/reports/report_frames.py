"""Small pictures of moments, for a page that carries them inside itself."""

from __future__ import annotations

import base64
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import WordreelError
from wordreel.media import Fence, FrameNeed, Frames
from wordreel.media.types import StreamRequest
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.scoring import Scoring
from wordreel.search.searcher import Searcher

SIDE = 112  # pixels of the shorter side
QUALITY = 72
RATE = 10.0  # one frame of a tenth of a second is requested


class FrameGrabber:
    """Pictures of a library's videos as data URLs; None where a file is missing, broken or only sound."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self._fence = Fence()
        self._paths: dict[str, str] = {}
        for file in searcher.store.files():
            self._paths.setdefault(file.content, file.path)
        self._frames: dict[tuple[str, float], str | None] = {}

    def __enter__(self) -> FrameGrabber:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._fence.close()

    def moment(self, content: str, text: str | None = None) -> str | None:
        """Return the middle of the best moment of a video for `text`; without text, its middle."""
        path = self._paths.get(content)
        if path is None or not Path(path).is_file():
            return None
        start, end = self._span(content, path, text)
        key = (content, (start + end) / 2)
        if key not in self._frames:
            self._frames[key] = self._grab(Path(path), key[1])
        return self._frames[key]

    def _span(self, content: str, path: str, text: str | None) -> tuple[float, float]:
        if text is not None and text.strip():
            # A folder that is the file itself lets only this one video through.
            hits = self._searcher.search(Query(text, limit=1, filters=Filters(folder=path)), Scoring())
            if hits and hits[0].content == content:
                return hits[0].start, hits[0].end
        info = self._searcher.store.info(content)
        return 0.0, info.duration if info else 0.0

    def _grab(self, path: Path, time: float) -> str | None:
        request = StreamRequest((FrameNeed(RATE, SIDE),), 1.0, time, time + 1 / RATE)
        try:
            for window in self._fence.run(path, request):
                part = window.parts[0]
                if isinstance(part, Frames) and len(part):
                    return data_url(part.images[0])
        except WordreelError:
            return None
        return None


def data_url(image: NDArray[np.uint8]) -> str | None:
    """Return a JPEG of `image [height, width, 3]` that can stand in a page.

    >>> data_url(np.zeros((8, 8, 3), np.uint8))[:22]
    'data:image/jpeg;base64'
    """
    import cv2

    done, packed = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(packed.tobytes()).decode() if done else None
