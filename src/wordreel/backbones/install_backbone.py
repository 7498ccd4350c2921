"""Take the files of a CLIP-like model into the store as they are, described and run once."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.backbone import CONFIG
from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.layout import (
    Layout,
    files_in,
    find_layout,
    read_family,
    read_head,
    read_text_settings,
    read_transform,
)
from wordreel.backbones.tokenizer import TextTokenizer
from wordreel.backbones.tower import Tower
from wordreel.backbones.transform import transform_images
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.sessions import Precision
from wordreel.runtime.weight_folders import check_space
from wordreel.types import Float32
from wordreel.util.checksum import file_sha256

VERSION = 2  # part of the fingerprint: raise it when the same files give other embeddings
TEXTS = ("a cat", "two dogs run")


def copy_backbone(source: Path, out: Path, name: str, precision: Precision) -> dict[str, Any]:
    """Copy a model's files into the folder `out`, and write down what runs them.

    Returns:
        What the manifest says of them: precision, the sha256 of each file, fingerprint.

    Raises:
        WeightsError: The files are not those of a model that can be run.
    """
    layout = find_layout(files_in(source), precision)
    if layout is None:
        raise WeightsError(f"{source} holds no ONNX files of a CLIP-like model")
    needed = sum((source / file).stat().st_size for file in layout.files)
    check_space(out, needed, "the model has")
    for file in layout.files:
        (out / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / file, out / file)
    config = _described(out, layout, name)
    (out / CONFIG).write_text(json.dumps(config.to_json(), indent=1), encoding="utf-8")
    outputs = {file: file_sha256(out / file) for file in (*layout.files, CONFIG)}
    networks = sorted((file, digest) for file, digest in outputs.items() if file != CONFIG)
    facts = [VERSION, {**config.to_json(), "name": ""}, networks]
    return {
        "precision": precision,
        "outputs": outputs,
        "fingerprint": hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16],
    }


def _described(folder: Path, layout: Layout, name: str) -> BackboneConfig:
    """The configuration of a model, whose networks have been run."""
    transform = read_transform(folder, layout)
    image, text = Tower(folder / layout.vision), Tower(folder / layout.text)
    settings = read_text_settings(folder, layout, text.length, text.masked)
    pictures = np.zeros((2, transform.size, transform.size, 3), np.uint8)
    pictures[1, : transform.size // 2] = 255
    tokenizer = TextTokenizer((folder / layout.tokenizer).read_text(encoding="utf-8"), settings)
    try:
        rows = {
            "image": image.pictures(transform_images(pictures, transform)),
            "text": text.texts(*tokenizer.encode(TEXTS)),
        }
    except Exception as error:  # onnxruntime's errors share no class
        raise WeightsError(f"{name} cannot be run: {str(error)[:200]}") from None
    for tower, vectors in rows.items():
        _check_vectors(vectors, tower, name)
    dims = {tower: vectors.shape[1] for tower, vectors in rows.items()}
    head = read_head(folder, layout, dims["text"])
    if head is None and dims["image"] != dims["text"]:
        raise WeightsError(
            f"{name} gives pictures {dims['image']} numbers and texts {dims['text']}: they share no space",
            NextStep("take files exported with the projections"),
        )
    return BackboneConfig(name, read_family(folder, layout), dims["image"], transform, settings, head)


def _check_vectors(vectors: Float32, tower: str, name: str) -> None:
    usable = vectors.ndim == 2 and bool(np.isfinite(vectors).all())
    if not usable or np.allclose(vectors[0], vectors[1], rtol=1e-6):
        raise WeightsError(
            f"the {tower} tower of {name} gives no usable embeddings",
            NextStep("check that the weights are trained ones"),
        )
