"""Finding faces: boxes and five points each, from a one-shot detector with strides of 8, 16 and 32 pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.nets.runtime import Network
from wordreel.types import Float32, Float64

STRIDES = (8, 16, 32)
LEAST_SCORE = 0.7
MOST_OVERLAP = 0.3
LARGEST = 8


@dataclass(frozen=True)
class Faces:
    """`boxes [n, 4]` as left, top, right, bottom; `points [n, 5, 2]`; `scores [n]`; largest first."""

    boxes: Float64
    points: Float64
    scores: Float64

    def __len__(self) -> int:
        return len(self.boxes)

    def take(self, rows: NDArray[np.intp]) -> Faces:
        return Faces(self.boxes[rows], self.points[rows], self.scores[rows])


def find_faces(yunet: Network, image: NDArray[np.uint8]) -> Faces:
    """The `LARGEST` largest faces of one upright RGB image `[h, w, 3]`, by YuNet (Wu et al. 2023)."""
    pixels = padded(image)[..., ::-1]
    outputs = yunet(input=np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]))
    return largest(without_overlaps(decode(outputs, pixels.shape[1])))


def decode(outputs: dict[str, Float32], width: int) -> Faces:
    """Candidates sure enough to be faces. Cell (r, c) of stride s says:

    score = √(class · object), centre = s (c + b₀, r + b₁), size = s (e^b₂, e^b₃), point k = s (c + x, r + y).
    """
    boxes, points, scores = [], [], []
    for stride in STRIDES:
        sure = np.sqrt(
            np.clip(outputs[f"cls_{stride}"][0, :, 0], 0, 1)
            * np.clip(outputs[f"obj_{stride}"][0, :, 0], 0, 1)
        ).astype(np.float64)
        cells = np.flatnonzero(sure >= LEAST_SCORE)
        rows, columns = np.divmod(cells, width // stride)
        corner = np.stack([columns, rows], 1)
        box = outputs[f"bbox_{stride}"][0, cells].astype(np.float64)
        middle = stride * (corner + box[:, :2])
        half = stride * np.exp(np.clip(box[:, 2:], None, 10.0)) / 2
        boxes.append(np.concatenate([middle - half, middle + half], 1))
        offsets = outputs[f"kps_{stride}"][0, cells].astype(np.float64).reshape(-1, 5, 2)
        points.append(stride * (corner[:, None] + offsets))
        scores.append(sure[cells])
    return Faces(np.concatenate(boxes), np.concatenate(points), np.concatenate(scores))


def without_overlaps(faces: Faces) -> Faces:
    """Non-maximum suppression: of two boxes that overlap by more than `MOST_OVERLAP`, the surer stays."""
    order = np.argsort(-faces.scores, kind="stable")
    kept: list[int] = []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(int(best))
        order = rest[overlap(faces.boxes[best], faces.boxes[rest]) <= MOST_OVERLAP]
    return faces.take(np.array(kept, np.intp))


def overlap(box: Float64, others: Float64) -> Float64:
    """Intersection over union of one box with others `[n, 4]`."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    union = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1) - shared
    result: Float64 = shared / np.maximum(union, 1e-9)
    return result


def largest(faces: Faces) -> Faces:
    """The `LARGEST` faces of most area, largest first."""
    area = np.prod(faces.boxes[:, 2:] - faces.boxes[:, :2], axis=1)
    return faces.take(np.argsort(-area, kind="stable")[:LARGEST])


def padded(image: NDArray[np.uint8]) -> Float32:
    """The image with black below and to the right, up to multiples of the coarsest stride."""
    height, width = image.shape[:2]
    below, right = -height % STRIDES[-1], -width % STRIDES[-1]
    return np.pad(image, ((0, below), (0, right), (0, 0))).astype(np.float32)
