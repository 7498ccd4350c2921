"""Convert a CLIP-like model into what `Backbone` loads: checked, bounded, run once.

Sizes that the configuration claims are checked against limits, and every key and shape of the weights against
the network, before anything of that size is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.backbone import CONFIG, HEAD_FILE, TOKENIZER, Backbone
from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.frame_head import HEAD
from wordreel.backbones.read_backbone import read_backbone
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.disk_space import check_space
from wordreel.runtime.hub_download import SMALL_FILES
from wordreel.runtime.sessions import Precision
from wordreel.runtime.store import WeightStore
from wordreel.util.checksum import file_sha256

CONVERTER_VERSION = 1  # part of the fingerprint: raise it when the output changes
WEIGHT_SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")


def convert_backbone(
    store: WeightStore, source: Path, out: Path, name: str, precision: Precision
) -> dict[str, Any]:
    """Write towers, tokenizer and configuration into the folder `out`.

    Returns:
        What the manifest says of them: precision, source files and outputs with their sha256, losses of the
        precision, fingerprint.

    Raises:
        WeightsError: The source is not a supported model, or damaged.
    """
    from safetensors.numpy import save as safetensors_bytes

    from wordreel.backbones.limits import check_limits
    from wordreel.backbones.precision import precision_loss
    from wordreel.backbones.towers import tower_shapes, write_towers

    files = source_hashes(source)
    config, state = read_backbone(source)
    config = replace(config, name=name)
    check_limits(config)
    parameters = sum(math.prod(shape) for shape in tower_shapes(config).values())
    exact = precision == "fp32"
    needed = (4 if exact else 8) * parameters  # others are compared with float32 towers
    check_space(out, needed, "the converted towers need")
    tokenizer = _tokenizer(store, source if source.is_dir() else source.parent, config)
    (out / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    (out / CONFIG).write_text(json.dumps(config.to_json(), indent=1), encoding="utf-8")
    write_towers(config, state, out, precision)
    losses = {} if exact else precision_loss(config, state, out)
    if config.head is not None:
        head = {key.removeprefix(HEAD): np.asarray(state[key]) for key in state if key.startswith(HEAD)}
        (out / HEAD_FILE).write_bytes(safetensors_bytes(head))
    del state
    outputs = {path.name: file_sha256(path) for path in sorted(out.iterdir())}
    facts = [
        CONVERTER_VERSION,
        precision,
        {**config.to_json(), "name": ""},
        tokenizer,
        sorted(files.items()),
    ]
    fingerprint = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    _check_runs(Backbone(out, fingerprint, outputs))
    return {
        "precision": precision,
        "files": files,
        "outputs": outputs,
        "losses": {tower: loss.mean for tower, loss in losses.items()},
        "fingerprint": fingerprint,
    }


def _tokenizer(store: WeightStore, folder: Path, config: BackboneConfig) -> str:
    """The folder's own tokenizer, or OpenAI's for a checkpoint that brings none."""
    from wordreel.backbones import tokenizer_files
    from wordreel.backbones.tokenizer import CLIP_VOCABULARY

    own = any((folder / name).is_file() for name in tokenizer_files.FILES)
    if own or config.tokenizer.kind != "clip":
        return tokenizer_files.from_folder(folder, config.tokenizer, config.text.vocabulary)
    store.fetch(CLIP_VOCABULARY)
    content = store.file(CLIP_VOCABULARY).read_text(encoding="utf-8")
    return tokenizer_files.check_vocabulary(content, config.tokenizer, config.text.vocabulary)


def _check_runs(backbone: Backbone) -> None:
    """Raise unless both towers give finite embeddings that are not all the same."""
    size = backbone.config.transform.size
    pictures = np.zeros((2, size, size, 3), np.uint8)
    pictures[1, : size // 2] = 255
    for tower, rows in (
        ("image", backbone.images(pictures)),
        ("text", backbone.texts(["a cat", "two dogs"])),
    ):
        if not np.isfinite(rows).all() or np.allclose(rows[0], rows[1], rtol=1e-6):
            raise WeightsError(
                f"the {tower} tower of {backbone.config.name} gives no usable embeddings",
                NextStep("check that the weights are trained ones"),
            )


def source_hashes(source: Path) -> dict[str, str]:
    """The sha256 of the files of a source that are read."""
    if source.is_file():
        paths = [source, *(source.parent / name for name in SMALL_FILES)]
    else:
        paths = [path for path in sorted(source.iterdir()) if _is_read(path.name)]
    return {path.name: file_sha256(path) for path in paths if path.is_file()}


def _is_read(name: str) -> bool:
    return name in SMALL_FILES or is_weight_file(name) or name.endswith(".index.json")


def is_weight_file(name: str) -> bool:
    """Whether a file may hold weights, by its name; trainers number them, as in `pytorch_model.bin.4`."""
    return re.sub(r"\.\d+$", "", name).endswith(WEIGHT_SUFFIXES)
