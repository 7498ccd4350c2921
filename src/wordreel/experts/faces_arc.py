"""Who is seen, more accurately: SCRFD (Guo et al. 2021) detects, ArcFace (Deng et al. 2019) recognises.

These weights were trained on data for research only, so this expert runs only on request.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.face_detection import (
    MAX_FACES,
    STRIDES,
    DetectedFaces,
    largest,
    padded,
    suppress_overlaps,
)
from wordreel.experts.faces import Image, face_track, unit
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Labels, Track

WEIGHTS = "scrfd-arcface"
CARD = Card(
    name="faces_arc",
    modality="face",
    title="Faces, for research only: a row per face, alike for the same person",
    dim=512,
    need=FrameNeed(rate=1.0, short_side=360),
    licence="non-commercial research",
    weights=(WEIGHTS,),
    span=120.0,
    default=False,
    note=f"up to the {MAX_FACES} largest faces of a frame; SCRFD-500M and MobileFaceNet (WebFace600K)",
)
MIN_SCORE = 0.5
ANCHORS = 2  # per cell


class ArcFaceExpert:
    card = CARD

    def __init__(self, detector: Path, recogniser: Path, name: str) -> None:
        self.fingerprint = name
        self._detector = Network(detector)
        self._recogniser = Network(recogniser)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        return face_track(media, self.detect, self.embed)

    def detect(self, image: Image) -> DetectedFaces:
        """The largest faces of one upright RGB image `[h, w, 3]`."""
        pixels = padded(image)
        outputs = self._detector(**{"input.1": _scaled(pixels[None], 128.0)})
        return largest(suppress_overlaps(decode(outputs, pixels.shape[1])))

    def embed(self, faces: Image) -> Float32:
        """Unit rows `[n, 512]` of aligned RGB faces `[n, 112, 112, 3]`."""
        return unit(self._recogniser(**{"input.1": _scaled(faces, 127.5)})["516"])

    def labels(self, track: Track) -> Labels | None:
        return None


def load(store: WeightStore) -> ArcFaceExpert:
    folder = store.folder(WEIGHTS)
    name = fingerprint(CARD, store.source_hash(WEIGHTS))
    return ArcFaceExpert(folder / "scrfd_500m_bnkps.onnx", folder / "w600k_mbf.onnx", name)


def decode(outputs: dict[str, Float32], width: int) -> DetectedFaces:
    """Candidates with a score of at least `MIN_SCORE`.

    Each anchor stands at its cell's corner and gives, in strides, how far the box reaches left, up, right and
    down, and where the five landmarks lie.
    """
    boxes, points, scores = [], [], []
    for stride in STRIDES:
        confidence = outputs[f"score_{stride}"].reshape(-1).astype(np.float64)
        candidates = np.flatnonzero(confidence >= MIN_SCORE)
        rows, columns = np.divmod(candidates // ANCHORS, width // stride)
        corner = stride * np.stack([columns, rows], 1)
        reach = stride * outputs[f"bbox_{stride}"].reshape(-1, 2, 2)[candidates].astype(np.float64)
        boxes.append(np.concatenate([corner - reach[:, 0], corner + reach[:, 1]], 1))
        offsets = stride * outputs[f"kps_{stride}"].reshape(-1, 5, 2)[candidates].astype(np.float64)
        points.append(corner[:, None] + offsets)
        scores.append(confidence[candidates])
    return DetectedFaces(np.concatenate(boxes), np.concatenate(points), np.concatenate(scores))


def _scaled(images: Image | Float32, spread: float) -> Float32:
    """`[n, h, w, 3]` in 0..255 to `[n, 3, h, w]` round zero."""
    values = (images.astype(np.float32) - 127.5) / spread
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2), np.float32)
