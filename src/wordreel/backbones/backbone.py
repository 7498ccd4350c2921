"""A joint picture-text model ready to run: pictures and texts in, embeddings in one space out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.frame_head import FrameHead
from wordreel.backbones.tokenizer import ClipTokenizer
from wordreel.backbones.transform import transform_images
from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.runtime.sessions import Network
from wordreel.runtime.stamped_hash import has_sha256
from wordreel.types import Float32

CONFIG, TOKENIZER = "backbone.json", "tokenizer.json"
HEAD_FILE = "head.safetensors"  # of a model that has a head over frames
BATCH = 16


class Backbone:
    """The converted towers in a folder; each is checked and loaded when it is first used.

    Args:
        folder: A folder of the backbone store.
        fingerprint: Identifies weights, precision, transform and tokenizer.
        sha256: The expected hash of every file of the folder.
    """

    def __init__(self, folder: Path, fingerprint: str, sha256: Mapping[str, str]) -> None:
        self.fingerprint = fingerprint
        self._folder, self._sha256 = folder, sha256
        self.config = BackboneConfig.from_json(json.loads(self._file(CONFIG).read_text(encoding="utf-8")))

    def images(self, images: NDArray[np.uint8], batch: int = BATCH) -> Float32:
        """Embeddings `[n, dim]` of RGB pictures `[n, h, w, 3]`, not normalised."""
        out = np.zeros((len(images), self.config.dim), np.float32)
        for start in range(0, len(images), batch):
            pixels = transform_images(images[start : start + batch], self.config.transform)
            out[start : start + batch] = self._image_tower(frames=pixels)["features"]
        return out

    def texts(self, texts: Sequence[str], batch: int = BATCH) -> Float32:
        """Embeddings `[n, vector_dim]` of texts, not normalised."""
        ids, mask = self.tokenizer.encode(texts)
        if self.config.text.causal and self.config.text.pooling == "end" and self.config.head is None:
            ids = ids[:, : max(1, int(mask.any(axis=0).sum()))]  # no token sees what is behind the last end
        out = np.zeros((len(texts), self.config.vector_dim), np.float32)
        for start in range(0, len(ids), batch):
            out[start : start + batch] = self._text_tower(ids=ids[start : start + batch])["features"]
        return out

    @cached_property
    def tokenizer(self) -> ClipTokenizer:
        """Turns texts into token ids."""
        return ClipTokenizer.from_file(self._file(TOKENIZER), self.config.tokenizer)

    @cached_property
    def head(self) -> FrameHead | None:
        """Makes one vector of a clip's frame embeddings; None where their mean does."""
        from safetensors.numpy import load_file

        if self.config.head is None:
            return None
        weights = load_file(self._file(HEAD_FILE))
        return FrameHead(self.config.head, self.config.dim, weights, self.config.name)

    @cached_property
    def _image_tower(self) -> Network:
        return self._network("image")

    @cached_property
    def _text_tower(self) -> Network:
        return self._network("text")

    def _network(self, tower: str) -> Network:
        for name in self._sha256:
            if name.startswith(f"{tower}."):
                self._file(name)
        return Network(self._folder / f"{tower}.onnx")

    def _file(self, name: str) -> Path:
        path = self._folder / name
        try:
            whole = has_sha256(path, self._sha256.get(name, ""))
        except OSError:
            whole = False
        if not whole:
            raise WeightsCorrupt(
                f"the backbone in {self._folder} is damaged: {name} does not have the expected hash",
                NextStep("remove it and install it again", f"weights remove {self._folder.name}"),
            )
        return path
