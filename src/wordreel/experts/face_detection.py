"""Detect faces (boxes and five landmarks) with YuNet, and align them for recognition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.runtime.sessions import Network
from wordreel.types import Float32, Float64

STRIDES = (8, 16, 32)
MIN_SCORE = 0.7
MAX_OVERLAP = 0.3
MAX_FACES = 8

ALIGNED_SIZE = 112
LANDMARKS: Float64 = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
"""Pixel positions of eyes, nose tip and mouth corners in an aligned face, left to right as seen."""


@dataclass(frozen=True)
class DetectedFaces:
    """`boxes [n, 4]` as left, top, right, bottom; `points [n, 5, 2]`; `scores [n]`; largest first."""

    boxes: Float64
    points: Float64
    scores: Float64

    def __len__(self) -> int:
        return len(self.boxes)

    def take(self, rows: NDArray[np.intp]) -> DetectedFaces:
        return DetectedFaces(self.boxes[rows], self.points[rows], self.scores[rows])


def detect_faces(yunet: Network, image: NDArray[np.uint8]) -> DetectedFaces:
    """Return the `MAX_FACES` largest faces of an upright RGB image `[h, w, 3]`.

    By YuNet (Wu et al. 2023).
    """
    pixels = padded(image)[..., ::-1]
    outputs = yunet(input=np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]))
    return largest(suppress_overlaps(decode(outputs, pixels.shape[1])))


def decode(outputs: dict[str, Float32], width: int) -> DetectedFaces:
    """Return candidates with a score of at least `MIN_SCORE`.

    Cell (r, c) of stride s says:

    score = √(class · object), centre = s (c + b₀, r + b₁), size = s (e^b₂, e^b₃), point k = s (c + x, r + y).
    """
    boxes, points, scores = [], [], []
    for stride in STRIDES:
        confidence = np.sqrt(
            np.clip(outputs[f"cls_{stride}"][0, :, 0], 0, 1)
            * np.clip(outputs[f"obj_{stride}"][0, :, 0], 0, 1)
        ).astype(np.float64)
        cells = np.flatnonzero(confidence >= MIN_SCORE)
        rows, columns = np.divmod(cells, width // stride)
        corner = np.stack([columns, rows], 1)
        box = outputs[f"bbox_{stride}"][0, cells].astype(np.float64)
        middle = stride * (corner + box[:, :2])
        half = stride * np.exp(np.clip(box[:, 2:], None, 10.0)) / 2
        boxes.append(np.concatenate([middle - half, middle + half], 1))
        offsets = outputs[f"kps_{stride}"][0, cells].astype(np.float64).reshape(-1, 5, 2)
        points.append(stride * (corner[:, None] + offsets))
        scores.append(confidence[cells])
    return DetectedFaces(np.concatenate(boxes), np.concatenate(points), np.concatenate(scores))


def suppress_overlaps(faces: DetectedFaces) -> DetectedFaces:
    """Drop boxes that overlap a better one by more than `MAX_OVERLAP` (non-maximum suppression)."""
    order = np.argsort(-faces.scores, kind="stable")
    keep: list[int] = []
    while len(order):
        best, rest = order[0], order[1:]
        keep.append(int(best))
        order = rest[overlap(faces.boxes[best], faces.boxes[rest]) <= MAX_OVERLAP]
    return faces.take(np.array(keep, np.intp))


def overlap(box: Float64, others: Float64) -> Float64:
    """Return the intersection over union of one box with others `[n, 4]`."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    union = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1) - shared
    result: Float64 = shared / np.maximum(union, 1e-9)
    return result


def largest(faces: DetectedFaces) -> DetectedFaces:
    """Return the `MAX_FACES` faces of most area, largest first."""
    area = np.prod(faces.boxes[:, 2:] - faces.boxes[:, :2], axis=1)
    return faces.take(np.argsort(-area, kind="stable")[:MAX_FACES])


def padded(image: NDArray[np.uint8]) -> Float32:
    """Return the image with black below and to the right, up to multiples of the coarsest stride."""
    height, width = image.shape[:2]
    below, right = -height % STRIDES[-1], -width % STRIDES[-1]
    return np.pad(image, ((0, below), (0, right), (0, 0))).astype(np.float32)


def similarity_transform(points: Float64, template: Float64 = LANDMARKS) -> Float64:
    """Fit the rotation, scale and shift with the least squared error from points to template.

    The transform has the shape `[2, 3]`.

    With both sets centred and seen as complex numbers p, t, the best rotation and scale is the complex
    factor a = Σ p̄ t / Σ |p|²: the closed form of Umeyama (1991) in the plane, where no mirroring arises.
    """
    middle, goal = points.mean(0), template.mean(0)
    p = (points - middle) @ (1, 1j)
    t = (template - goal) @ (1, 1j)
    factor = np.vdot(p, t) / max(float(np.vdot(p, p).real), 1e-9)
    turn = np.array([[factor.real, -factor.imag], [factor.imag, factor.real]])
    return np.column_stack([turn, goal - turn @ middle])


def align_face(image: NDArray[np.uint8], points: Float64) -> NDArray[np.uint8]:
    """Warp the face with these five landmarks in `image [h, w, 3]` to `[112, 112, 3]`."""
    import cv2

    cut: NDArray[np.uint8] = cv2.warpAffine(
        image, similarity_transform(points), (ALIGNED_SIZE, ALIGNED_SIZE), flags=cv2.INTER_LINEAR
    )
    return cut
