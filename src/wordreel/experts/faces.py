"""Who is seen: faces detected by YuNet, recognised by SFace (Zhong et al. 2021); a row per face per frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.face_detection import DetectedFaces, align_face, detect_faces
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.nets.prelu import without_prelu
from wordreel.runtime.sessions import Network, picture_batch
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Labels, Track

CARD = Card(
    name="faces",
    modality="face",
    title="Faces: a row per face, alike for the same person",
    dim=128,
    need=FrameNeed(rate=1.0, short_side=360),
    licence="MIT (YuNet), Apache-2.0 (SFace)",
    weights=("yunet-sface",),
    span=15.0,
    note="up to the 8 largest faces of a frame",
)

Image = NDArray[np.uint8]


class FacesExpert:
    card = CARD

    def __init__(self, detector: Path, recogniser: Path, name: str) -> None:
        self.fingerprint = name
        self._detector = Network(detector)
        self._recogniser = Network(without_prelu(recogniser))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        return face_track(media, self.detect, self.embed)

    def detect(self, image: Image) -> DetectedFaces:
        """The largest faces of one upright RGB image `[h, w, 3]`."""
        return detect_faces(self._detector, image)

    def embed(self, faces: Image) -> Float32:
        """Unit rows `[n, 128]` of aligned RGB faces `[n, 112, 112, 3]`; the network scales pixels itself."""
        return unit(
            self._recogniser(data=np.ascontiguousarray(faces.transpose(0, 3, 1, 2), np.float32))["fc1"]
        )

    def labels(self, track: Track) -> Labels | None:
        return None


def load(store: WeightStore) -> FacesExpert:
    folder = store.folder("yunet-sface")
    name = fingerprint(CARD, store.source_hash("yunet-sface"))
    return FacesExpert(folder / "yunet.onnx", folder / "sface.onnx", name)


def face_track(
    media: Frames | Sound, detect: Callable[[Image], DetectedFaces], embed: Callable[[Image], Float32]
) -> Track | Absent:
    """One row per face: detected, aligned, and embedded in batches."""
    if not isinstance(media, Frames):
        raise TypeError("the faces expert takes frames")
    faces: list[Image] = []
    times: list[tuple[float, float]] = []
    for image, time in zip(media.images, media.times, strict=True):
        for points in detect(image).points:
            faces.append(align_face(image, points))
            times.append((float(time), float(time) + media.period))
    if not faces:
        return Absent("no face found")
    batch = picture_batch()
    rows = [embed(np.stack(faces[i : i + batch])) for i in range(0, len(faces), batch)]
    return Track(np.concatenate(rows), np.array(times, np.float64))


def unit(values: Float32) -> Float32:
    """Rows of length one, so that a product of two is their cosine."""
    rows: Float32 = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return rows
