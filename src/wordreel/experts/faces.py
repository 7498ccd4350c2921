"""Who is seen: faces that are detected, cut out and recognised; a row for each face in each frame.

YuNet detects (Wu et al. 2023). `faces` recognises with SFace (Zhong et al. 2021), `vggface2_resnet50` with a
ResNet-50 trained on VGGFace2 (after Liu et al. 2019): the papers speak of 512 numbers a face, the published
network gives the 2048 of its last pooling; their boxes came from another detector. A box is scaled so that
its shorter side is 224 pixels and cut centrally.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, ExpertEntry, fingerprint
from wordreel.experts.face_detection import DetectedFaces, align_face, detect_faces
from wordreel.experts.network_experts import published_card
from wordreel.experts.preprocess import Preprocess
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.sessions import Network, in_batches, picture_batch
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Array, Float32, Float64, Track

YUNET_SFACE, VGGFACE2 = "yunet-sface", "vggface2_resnet50"
YUNET_FILE = "face_detection_yunet_2023mar.onnx"
SFACE_FILE = "face_recognition_sface_2021dec.onnx"

CARD = Card(
    name="faces", modality="face", title="Faces: a row per face, alike for the same person", dim=128,
    need=FrameNeed(rate=1.0, short_side=360), licence="MIT (YuNet), Apache-2.0 (SFace)",
    weights=(YUNET_SFACE,), span=15.0, note="up to the 8 largest faces of a frame",
)  # fmt: skip
VGGFACE2_CARD = replace(
    published_card(
        VGGFACE2, "face", "Faces (ResNet-50, VGGFace2)", 2048, FrameNeed(25.0, 256), 20.0,
        "A row per face and frame, 25 frames a second.",
    ),
    weights=(VGGFACE2, YUNET_SFACE),
)  # fmt: skip
VGGFACE2_MEAN = (91.4953, 103.8827, 131.0912)  # blue, green, red
VGGFACE2_PREPROCESS = Preprocess(224, VGGFACE2_MEAN, (1.0, 1.0, 1.0), bgr=True, unit=1.0)
VGGFACE2_BATCH = 8

Image = NDArray[np.uint8]


class FacesExpert(ABC):
    """One row per face: cut out, and embedded in batches."""

    def __init__(self, card: Card, store: WeightStore, batch: int) -> None:
        self.card = card
        self.fingerprint = fingerprint(card, *(store.source_hash(name) for name in card.weights))
        self._detector = Network(store.file(YUNET_SFACE, "yunet.onnx"))
        self._batch = batch

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return a row per face and frame, valid for the frame's `[t, t + period)`."""
        if not isinstance(media, Frames):
            raise TypeError("the faces expert takes frames")
        faces: list[Array] = []
        times: list[tuple[float, float]] = []
        for image, time in zip(media.images, media.times, strict=True):
            for face in self.cut_out(image):
                faces.append(face)
                times.append((float(time), float(time) + media.period))
        if not faces:
            return Absent("no face found")
        rows = in_batches(lambda part: self.embed(np.stack(part)), faces, self._batch)
        return Track(rows, np.array(times, np.float64))

    def cut_out(self, image: Image) -> list[Array]:
        """Return the faces of one upright RGB image `[h, w, 3]`, as `embed` takes them."""
        return [align_face(image, points) for points in self.detect(image).points]

    def detect(self, image: Image) -> DetectedFaces:
        """Return the largest faces of one upright RGB image `[h, w, 3]`."""
        return detect_faces(self._detector, image)

    @abstractmethod
    def embed(self, faces: Array) -> Float32:
        """Return a row for each face that was cut out, `[n, …]`."""


class SFaceExpert(FacesExpert):
    """YuNet and SFace."""

    def __init__(self, store: WeightStore) -> None:
        super().__init__(CARD, store, picture_batch())
        self._recogniser = Network(without_prelu(store.file(YUNET_SFACE, "sface.onnx")))

    def embed(self, faces: Array) -> Float32:
        """Return unit rows `[n, 128]` of aligned RGB faces `[n, 112, 112, 3]`; the network scales pixels."""
        pixels = np.ascontiguousarray(faces.transpose(0, 3, 1, 2), np.float32)
        return _unit(self._recogniser(data=pixels)["fc1"])


class VGGFace2Expert(FacesExpert):
    """YuNet and a ResNet-50."""

    def __init__(self, store: WeightStore) -> None:
        super().__init__(VGGFACE2_CARD, store, VGGFACE2_BATCH)
        self._network = Network(store.folder(VGGFACE2) / "network.onnx")

    def cut_out(self, image: Image) -> list[Array]:
        """Return the faces of one upright RGB image, scaled to the network's input."""
        crops = (crop_box(image, box) for box in self.detect(image).boxes)
        return [VGGFACE2_PREPROCESS(crop[None])[0] for crop in crops if crop.size]

    def embed(self, faces: Array) -> Float32:
        """Return rows `[n, 2048]` of faces `[n, 3, 224, 224]`."""
        return self._network(frames=faces)["features"]


EXPERTS = {
    CARD.name: ExpertEntry(CARD, SFaceExpert),
    VGGFACE2_CARD.name: ExpertEntry(VGGFACE2_CARD, VGGFace2Expert),
}


def crop_box(image: Image, box: Float64) -> Image:
    """Return the part of the box (left, top, right, bottom) that lies in the picture, in whole pixels."""
    height, width = image.shape[:2]
    left, right = (int(np.clip(np.round(edge), 0, width)) for edge in box[[0, 2]])
    top, bottom = (int(np.clip(np.round(edge), 0, height)) for edge in box[[1, 3]])
    return image[top:bottom, left:right]


def _unit(values: Float32) -> Float32:
    """Scale rows to length one, so that a product of two is their cosine."""
    rows: Float32 = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-9)
    return rows


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `yunet.onnx` for any size in multiples of 32, and `sface.onnx` for any number of faces."""
    import onnx

    named = {PurePosixPath(member).name: path for member, path in files.items()}
    yunet, sface = (onnx.load(str(named[name])) for name in (YUNET_FILE, SFACE_FILE))
    onnx.save(reshaped(yunet, (1, 3, "height", "width"), free=1), str(out / "yunet.onnx"))
    onnx.save(reshaped(sface, ("n", 3, 112, 112), free=0), str(out / "sface.onnx"))


def reshaped(model: Any, shape: tuple[int | str, ...], free: int) -> Any:
    """Return the network with another declared input shape, weights no longer listed as inputs.

    `free` is the dimension of the outputs that depends on the input's size.
    """
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1:
        raise ValueError(f"expected a network with one input, got {len(inputs)}")
    del graph.input[:]
    graph.input.extend(inputs)
    for dim, size in zip(graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        if isinstance(size, str):
            dim.dim_param = size
        else:
            dim.dim_value = size
    del graph.value_info[:]
    for output in graph.output:
        for axis, dim in enumerate(output.type.tensor_type.shape.dim):
            if axis == free:
                dim.dim_param = f"{output.name}_{axis}"
    return model


def without_prelu(path: Path) -> bytes:
    """Return a file's network with a x + (1 - a) relu(x) for each PReLU of slopes a.

    It is the same function (x above 0, a x below) in operators that onnxruntime runs twice as fast.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(path))
    graph = model.graph
    arrays = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[Any] = []
    for node in graph.node:
        if node.op_type != "PRelu" or node.input[1] not in arrays:
            nodes.append(node)
            continue
        x, y = node.input[0], node.output[0]
        slope = numpy_helper.to_array(arrays[node.input[1]])
        names = [f"{y}/{part}" for part in ("slope", "rest", "positive", "below", "above")]
        low, high, positive, below, above = names
        graph.initializer.append(numpy_helper.from_array(slope, low))
        graph.initializer.append(numpy_helper.from_array(np.asarray(1 - slope, slope.dtype), high))
        nodes += [
            helper.make_node("Relu", [x], [positive]),
            helper.make_node("Mul", [x, low], [below]),
            helper.make_node("Mul", [positive, high], [above]),
            helper.make_node("Add", [below, above], [y]),
        ]
    del graph.node[:]
    graph.node.extend(nodes)
    return bytes(model.SerializeToString())
