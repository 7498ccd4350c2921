"""Who is seen: a ResNet-50 trained on VGGFace2, over the faces YuNet detects (after Liu et al. 2019).

The papers speak of 512 numbers a face; the published ResNet-50 gives the 2048 of its last pooling. Their
boxes came from another detector. A box is scaled so that its shorter side is 224 pixels and cut centrally.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import fingerprint
from wordreel.experts.face_detection import detect_faces
from wordreel.experts.preprocess import Preprocess
from wordreel.experts.published import published_card
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Float64, Labels, Track

WEIGHTS = "vggface2_resnet50"
DETECTOR = "yunet-sface"
MEAN = (91.4953, 103.8827, 131.0912)  # blue, green, red
PREPROCESS = Preprocess(224, MEAN, (1.0, 1.0, 1.0), bgr=True, unit=1.0)
BATCH = 8

CARD = replace(
    published_card(
        WEIGHTS, "face", "Faces (ResNet-50, VGGFace2)", 2048, FrameNeed(25.0, 256), 20.0,
        "A row per face and frame, 25 frames a second.",
    ),
    weights=(WEIGHTS, DETECTOR),
)  # fmt: skip


class VGGFace2Expert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        folder = store.folder(WEIGHTS)
        detector = store.file(DETECTOR, "yunet.onnx")
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS), store.source_hash(DETECTOR))
        self._detector = Network(detector)
        self._network = Network(folder / "network.onnx")

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """One row per face, valid for its frame's `[t, t + period)`."""
        if not isinstance(media, Frames) or len(media) == 0:
            return Absent("no frames")
        faces: list[Float32] = []
        times: list[tuple[float, float]] = []
        for image, time in zip(media.images, media.times, strict=True):
            for box in detect_faces(self._detector, image).boxes:
                face = crop_box(image, box)
                if face.size:
                    faces.append(PREPROCESS(face[None]))
                    times.append((float(time), float(time) + media.period))
        if not faces:
            return Absent("no face found")
        rows = [
            self._network(frames=np.concatenate(faces[start : start + BATCH]))["features"]
            for start in range(0, len(faces), BATCH)
        ]
        return Track(np.concatenate(rows), np.array(times, np.float64))

    def labels(self, track: Track) -> Labels | None:
        return None


def crop_box(image: NDArray[np.uint8], box: Float64) -> NDArray[np.uint8]:
    """The part of the box (left, top, right, bottom) that lies in the picture, in whole pixels."""
    height, width = image.shape[:2]
    left, right = (int(np.clip(np.round(edge), 0, width)) for edge in box[[0, 2]])
    top, bottom = (int(np.clip(np.round(edge), 0, height)) for edge in box[[1, 3]])
    return image[top:bottom, left:right]


def load(store: WeightStore) -> VGGFace2Expert:
    """Load the expert with its weights, checked."""
    return VGGFace2Expert(store)
