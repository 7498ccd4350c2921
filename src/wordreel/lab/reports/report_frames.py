"""Small pictures of moments, for a page that carries them inside itself."""

from __future__ import annotations

import base64
from pathlib import Path

from wordreel.errors import WordreelError
from wordreel.media import Fence
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.scoring import Scoring
from wordreel.search.searcher import Searcher
from wordreel.serve.pictures import PRECISION, decode_frames, jpeg

SIDE = 112  # pixels of the shorter side


class FrameGrabber:
    """Pictures of a library's videos as data URLs; None where a file is missing, broken or only sound."""

    def __init__(self, searcher: Searcher, fence: Fence) -> None:
        self._searcher = searcher
        self._fence = fence
        self._paths: dict[str, Path] = {}
        for file in searcher.store.files():
            self._paths.setdefault(file.content, Path(file.path))
        self._frames: dict[tuple[str, float], str | None] = {}

    def moment(self, content: str, text: str | None = None) -> str | None:
        """Return the middle of the best moment of a video for `text`; without text, its middle."""
        path = self._paths.get(content)
        if path is None or not path.is_file():
            return None
        start, end = self._span(content, path, text)
        key = (content, (start + end) / 2)
        if key not in self._frames:
            self._frames[key] = self._grab(path, key[1])
        return self._frames[key]

    def _span(self, content: str, path: Path, text: str | None) -> tuple[float, float]:
        if text is not None and text.strip():
            # A folder that is the file itself lets only this one video through.
            query = Query(text, limit=1, filters=Filters(folder=str(path)))
            hits = self._searcher.search(query, Scoring())
            if hits and hits[0].content == content:
                return hits[0].start, hits[0].end
        info = self._searcher.store.info(content)
        return 0.0, info.duration if info else 0.0

    def _grab(self, path: Path, time: float) -> str | None:
        try:
            image = decode_frames(self._fence, path, time, time + PRECISION, 1, SIDE)[0]
        except WordreelError:
            return None
        return "data:image/jpeg;base64," + base64.b64encode(jpeg(image)).decode()
