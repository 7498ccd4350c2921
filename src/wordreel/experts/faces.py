"""Who is seen: faces found by YuNet, told apart by SFace (Zhong et al. 2021); one row per face per frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.face_align import align
from wordreel.experts.face_find import Faces, find_faces
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.nets.runtime import Network
from wordreel.types import Absent, Float32, Labels, Track
from wordreel.weights.store import WeightStore

CARD = Card(
    name="faces",
    modality="face",
    title="Faces: a row per face, alike for the same person",
    dim=128,
    need=FrameNeed(rate=1.0, short_side=360),
    licence="MIT (YuNet), Apache-2.0 (SFace)",
    weights=("yunet-sface",),
    span=120.0,
    note="up to the 8 largest faces of a frame",
)
BATCH = 16

Image = NDArray[np.uint8]


class FaceExpert:
    card = CARD

    def __init__(self, finder: Path, teller: Path, name: str) -> None:
        self.fingerprint = name
        self._finder = Network(finder)
        self._teller = Network(teller)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        return face_track(media, lambda image: find_faces(self._finder, image), self.tell)

    def tell(self, cuts: Image) -> Float32:
        """Unit rows `[n, 128]` of aligned RGB faces `[n, 112, 112, 3]`; the network scales pixels itself."""
        return unit(self._teller(data=np.ascontiguousarray(cuts.transpose(0, 3, 1, 2), np.float32))["fc1"])

    def labels(self, track: Track) -> Labels | None:
        return None


def load(store: WeightStore) -> FaceExpert:
    folder = store.folder("yunet-sface")
    name = fingerprint(CARD, store.source_hash("yunet-sface"))
    return FaceExpert(folder / "yunet.onnx", folder / "sface.onnx", name)


def face_track(
    media: Frames | Sound, find: Callable[[Image], Faces], tell: Callable[[Image], Float32]
) -> Track | Absent:
    """One row per face: found, cut out upright, and told apart a batch at a time."""
    if not isinstance(media, Frames):
        raise TypeError("the faces expert takes frames")
    cuts: list[Image] = []
    times: list[tuple[float, float]] = []
    for image, time in zip(media.images, media.times, strict=True):
        for points in find(image).points:
            cuts.append(align(image, points))
            times.append((float(time), float(time) + media.period))
    if not cuts:
        return Absent("no face found")
    rows = [tell(np.stack(cuts[i : i + BATCH])) for i in range(0, len(cuts), BATCH)]
    return Track(np.concatenate(rows), np.array(times, np.float64))


def unit(values: Float32) -> Float32:
    """Rows of length one, so that a product of two is their cosine."""
    rows: Float32 = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return rows
