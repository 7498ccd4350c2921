"""Measure the ranges that the image tower of CLIP is rounded with, on pictures and frames of your own.

    python tools/clip_ranges.py clip_encoder.int8.onnx ~/Pictures clip_ranges.safetensors

s_j = max|a_j|^α / max|W_j|^(1 − α), divided by its geometric mean; a_j over all pictures, W_j over the
products that read the activation. Embeddings change with the file: raise the `converter_version` of
`wordreel.runtime.nets.clip_tower` with them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from safetensors.numpy import save_file

from wordreel.experts.clip import CARD, PREPROCESS
from wordreel.ingest.extract import closable
from wordreel.media import Fence
from wordreel.media.types import Frames
from wordreel.runtime.nets import clip_tower

ALPHA = 0.65
BATCH = 4
Bounds = Mapping[str, tuple[np.ndarray, np.ndarray]]  # least and largest value of each channel, by role


def ranges(model: Any, bounds: Bounds) -> dict[str, np.ndarray]:
    """What the file holds of each activation, from the bounds of its channels."""
    largest: dict[str, np.ndarray] = {}
    for product in clip_tower.products(model):
        rows = np.abs(product.weight()).max(axis=1)
        largest[product.role] = np.maximum(largest.get(product.role, 1e-5), rows)
    arrays = {}
    for role, (low, high) in bounds.items():
        if role.endswith(clip_tower.FLOAT):
            continue
        activation = np.maximum(np.maximum(-low, high), 1e-3)
        smooth = activation**ALPHA / largest[role] ** (1 - ALPHA)
        smooth = (smooth / np.exp(np.log(smooth).mean())).astype(np.float32)
        arrays[f"{role}.smooth"] = smooth
        arrays[f"{role}.range"] = np.array([(low / smooth).min(), (high / smooth).max()], np.float64)
    return arrays


def measure(model: Any, pictures: Iterable[np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The bounds of every activation over normalised pictures `[3, 224, 224]`; turns the model to float."""
    found = clip_tower.products(model)
    roles = {product.source: product.role for product in found}
    clip_tower.exchange(model, found, clip_tower.float_product)
    for source in roles:
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(source))
    session = _session(model)
    bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for batch in _batches(pictures):
        values = session.run(list(roles), {clip_tower.INPUT: batch})
        for role, value in zip(roles.values(), values, strict=True):
            low, high = bounds.get(role, (np.float64(np.inf), np.float64(-np.inf)))
            rows = value.reshape(-1, value.shape[-1])
            bounds[role] = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    return bounds


def golden(model: Any) -> np.ndarray:
    """The embeddings of the golden pictures by a float model."""
    given = {clip_tower.INPUT: clip_tower.golden_pictures()}
    return np.asarray(_session(model).run([clip_tower.OUTPUT], given)[0], np.float16)


def _session(model: Any) -> Any:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _batches(pictures: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    batch: list[np.ndarray] = []
    for picture in pictures:
        batch.append(picture)
        if len(batch) == BATCH:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


def _pictures(folder: Path) -> Iterator[np.ndarray]:
    """The first frame of every file below a folder, as the expert sees it."""
    with Fence() as fence:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            with closing(closable(fence.stream(path, [CARD.need]))) as windows:
                (frames,) = next(windows).parts
            if isinstance(frames, Frames):
                yield from PREPROCESS(frames.images[:1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", type=Path, help="the published ONNX file")
    parser.add_argument("pictures", type=Path, help="a folder of pictures and videos")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    model = onnx.load(str(given.network))
    published = onnx.load(str(given.network))
    bounds = measure(model, _pictures(given.pictures))
    save_file({**ranges(published, bounds), "golden": golden(model)}, str(given.out))


if __name__ == "__main__":
    main()
