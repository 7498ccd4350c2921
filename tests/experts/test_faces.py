"""Faces: the detector's decoding and the alignment against OpenCV's own, and rows that tell people apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wordreel.experts import face_detection, faces
from wordreel.experts.face_detection import (
    ALIGNED_SIZE,
    LANDMARKS,
    DetectedFaces,
    align_face,
    detect_faces,
    largest,
    overlap,
    similarity_transform,
    suppress_overlaps,
)
from wordreel.media.types import Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track

RNG = np.random.default_rng(5)


def film(images: np.ndarray, start: float = 0.0) -> Frames:
    return Frames(images, start + np.arange(len(images), dtype=np.float64), 1.0)


def drawn_face(height: int = 360, width: int = 480, shift: int = 0, tone: int = 0) -> np.ndarray:
    """A face by formula: an oval with hair, eyes, nose and mouth. Crude, but the detectors take it."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    x, y = (x - width / 2 - shift) / 70, (y - height / 2) / 95

    def blob(cx: float, cy: float, rx: float, ry: float) -> np.ndarray:
        return np.exp(-(((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2))

    skin = 1 / (1 + np.exp(24 * (np.sqrt(x**2 + y**2) - 1)))
    shade = 1 - 0.25 * x**2 - 0.1 * y**2
    dark = 0.0 * x
    for side in (-0.4, 0.4):
        dark = dark + 0.85 * blob(side, -0.2, 0.16, 0.07) + 0.5 * blob(side, -0.4, 0.26, 0.05)
        dark = dark + 0.3 * blob(side * 0.3, 0.24, 0.09, 0.05)
    dark = np.clip(dark + 0.6 * blob(0, 0.52, 0.34, 0.06) + 0.2 * blob(0.14, 0.05, 0.05, 0.25), 0, 0.95)
    hair = 1 / (1 + np.exp(18 * (y + 0.62 - 0.2 * x**2)))
    colour = np.array([225 - tone, 180 - tone, 150 - tone])
    face = (skin * shade * (1 - dark))[..., None] * colour * (1 - 0.8 * hair[..., None])
    return np.clip(face + (1 - skin[..., None]) * np.array([60, 75, 90]), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def expert() -> faces.SFaceExpert:
    if not WeightStore().has("yunet-sface"):
        pytest.skip("weights 'yunet-sface' are not on this machine: run `wordreel weights fetch yunet-sface`")
    return faces.SFaceExpert(WeightStore())


def test_golden(expert: faces.SFaceExpert, golden: dict[str, np.ndarray]) -> None:
    track = expert.extract(film(np.stack([drawn_face(), drawn_face(shift=60)]), start=4.0))
    assert isinstance(track, Track)
    assert track.times.tolist() == [[4, 5], [5, 6]]
    np.testing.assert_allclose(track.values, golden["values"], atol=2e-3)


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "golden" / "faces.npz") as stored:
        return dict(stored)


def test_the_drawn_face_is_found_where_it_is(expert: faces.SFaceExpert) -> None:
    found = detect_faces(expert._detector, drawn_face(shift=60))
    assert len(found) == 1
    left, top, right, bottom = found.boxes[0]
    assert left < 300 < right
    assert top < 180 < bottom
    eyes = found.points[0, :2]
    np.testing.assert_allclose(eyes, [[272, 161], [328, 161]], atol=8)


def test_finding_equals_opencv(expert: faces.SFaceExpert) -> None:
    cv2 = pytest.importorskip("cv2")
    network = WeightStore().file("yunet-sface", "yunet.onnx")
    image = np.concatenate([drawn_face(352, 320), drawn_face(352, 320, tone=30)], axis=1)
    twin = cv2.FaceDetectorYN.create(str(network), "", (640, 352), face_detection.MIN_SCORE, 0.3, 50)
    _, expected = twin.detect(np.ascontiguousarray(image[..., ::-1]))
    found = detect_faces(expert._detector, image)
    assert len(found) == len(expected) == 2
    expected = expected[np.argsort(expected[:, 0])]
    found = found.take(np.argsort(found.boxes[:, 0]))
    np.testing.assert_allclose(found.boxes[:, :2], expected[:, :2], atol=0.1)
    np.testing.assert_allclose(found.boxes[:, 2:] - found.boxes[:, :2], expected[:, 2:4], atol=0.1)
    np.testing.assert_allclose(found.points.reshape(-1, 10), expected[:, 4:14], atol=0.1)
    np.testing.assert_allclose(found.scores, expected[:, 14], atol=1e-3)


def test_telling_equals_opencv(expert: faces.SFaceExpert) -> None:
    cv2 = pytest.importorskip("cv2")
    twin = cv2.FaceRecognizerSF.create(str(WeightStore().file("yunet-sface", "sface.onnx")), "")
    image = drawn_face(shift=25)
    found = detect_faces(expert._detector, image)
    row = np.concatenate([found.boxes[0], found.points[0].ravel(), found.scores[:1]]).astype(np.float32)
    cut = twin.alignCrop(np.ascontiguousarray(image[..., ::-1]), row)
    expected = twin.feature(cut)[0]
    cosine = expert.embed(align_face(image, found.points[0])[None])[0] @ expected / np.linalg.norm(expected)
    assert cosine > 0.998


def test_a_batch_equals_one_by_one(expert: faces.SFaceExpert) -> None:
    cuts = RNG.integers(0, 256, (5, ALIGNED_SIZE, ALIGNED_SIZE, 3), dtype=np.uint8)
    one_by_one = np.concatenate([expert.embed(cut[None]) for cut in cuts])
    np.testing.assert_allclose(expert.embed(cuts), one_by_one, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(one_by_one, axis=1), 1, atol=1e-5)


def test_frames_together_equal_frames_apart_and_two_runs_are_equal(expert: faces.SFaceExpert) -> None:
    images = np.stack([drawn_face(), np.zeros_like(drawn_face()), drawn_face(shift=40)])
    together, again = expert.extract(film(images)), expert.extract(film(images))
    assert isinstance(together, Track)
    assert isinstance(again, Track)
    np.testing.assert_array_equal(together.values, again.values)
    apart = [expert.extract(film(images[i : i + 1], start=i)) for i in range(3)]
    assert apart[1] == Absent("no face found")
    rows = [track.values for track in apart if isinstance(track, Track)]
    np.testing.assert_allclose(together.values, np.concatenate(rows), atol=1e-5)
    assert together.times.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("size", [(1, 1), (7, 500), (360, 640), (33, 31)])
def test_no_face(expert: faces.SFaceExpert, size: tuple[int, int]) -> None:
    noise = RNG.integers(0, 256, (2, *size, 3), dtype=np.uint8)
    for images in (noise, np.zeros_like(noise), np.full_like(noise, 255)):
        assert expert.extract(film(images)) == Absent("no face found")


def test_wrong_media(expert: faces.SFaceExpert) -> None:
    with pytest.raises(TypeError, match="frames"):
        expert.extract(Sound(np.zeros(10, np.float32), 16000))


def test_the_transform_undoes_a_known_motion() -> None:
    turn, scale, shift = 0.4, 1.7, np.array([30.0, -12.0])
    rotation = scale * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    moved = LANDMARKS @ rotation.T + shift
    matrix = similarity_transform(moved)
    np.testing.assert_allclose(moved @ matrix[:, :2].T + matrix[:, 2], LANDMARKS, atol=1e-9)


def test_the_transform_has_the_least_error() -> None:
    """Twin: linear least squares over the four free numbers of a similarity."""
    points = RNG.uniform(0, 300, (5, 2))
    rows = [[x, -y, 1, 0] for x, y in points] + [[y, x, 0, 1] for x, y in points]
    goal = np.concatenate([LANDMARKS[:, 0], LANDMARKS[:, 1]])
    a, b, c, d = np.linalg.lstsq(np.array(rows), goal, rcond=None)[0]
    np.testing.assert_allclose(similarity_transform(points), [[a, -b, c], [b, a, d]], atol=1e-8)


def test_points_in_one_place_do_not_divide_by_zero() -> None:
    assert np.isfinite(similarity_transform(np.full((5, 2), 7.0))).all()
    assert align_face(np.zeros((9, 9, 3), np.uint8), np.full((5, 2), 7.0)).shape == (
        ALIGNED_SIZE,
        ALIGNED_SIZE,
        3,
    )


def test_overlap_and_suppression() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [20, 0, 30, 10], [0, 0, 10, 5]], float)
    np.testing.assert_allclose(overlap(boxes[0], boxes), [1, 90 / 110, 0, 0.5])
    kept = suppress_overlaps(DetectedFaces(boxes, np.zeros((4, 5, 2)), np.array([0.8, 0.9, 0.7, 0.95])))
    assert kept.scores.tolist() == [0.95, 0.7]  # of the three that overlap, only the surest


def test_only_the_largest_stay() -> None:
    sides = np.arange(1.0, 21.0)
    boxes = np.stack([0 * sides, 0 * sides, sides, sides], 1)
    kept = largest(DetectedFaces(boxes, np.zeros((20, 5, 2)), np.ones(20)))
    assert kept.boxes[:, 2].tolist() == [20, 19, 18, 17, 16, 15, 14, 13]
