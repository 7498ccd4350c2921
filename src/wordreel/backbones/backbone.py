"""A joint picture-text model ready to run: pictures and texts in, embeddings in one space out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.layout import Layout, find_layout
from wordreel.backbones.tokenizer import TextTokenizer
from wordreel.backbones.tower import BATCH, FrameHead, Tower, transform_images
from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.runtime.sessions import Precision
from wordreel.runtime.stamped_hash import has_sha256
from wordreel.types import Float32

CONFIG = "backbone.json"


class Backbone:
    """The published networks in a folder; each is checked and loaded when it is first used.

    Args:
        folder: A folder of the backbone store.
        fingerprint: Identifies networks, transform and tokenizer.
        sha256: The expected hash of every file of the folder.
        precision: Which of the published files are used.
    """

    def __init__(
        self, folder: Path, fingerprint: str, sha256: Mapping[str, str], precision: Precision = "fp32"
    ) -> None:
        self.fingerprint = fingerprint
        self._folder, self._sha256 = folder, sha256
        layout = find_layout(sha256, precision)
        if layout is None:
            raise self._damaged("a network")
        self._layout: Layout = layout
        self.config = BackboneConfig.from_json(json.loads(self._file(CONFIG).read_text(encoding="utf-8")))

    def images(self, images: NDArray[np.uint8]) -> Float32:
        """Return embeddings `[n, dim]` of RGB pictures `[n, h, w, 3]`, not normalised."""
        out = np.zeros((len(images), self.config.dim), np.float32)
        for start in range(0, len(images), BATCH):
            pixels = transform_images(images[start : start + BATCH], self.config.transform)
            out[start : start + BATCH] = self._image_tower.pictures(pixels)
        return out

    def texts(self, texts: Sequence[str]) -> Float32:
        """Return embeddings `[n, vector_dim]` of texts, not normalised."""
        if not texts:
            return np.zeros((0, self.config.vector_dim), np.float32)
        return self._text_tower.texts(*self.tokenizer.encode(texts))

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """Turns texts into token ids."""
        content = self._file(self._layout.tokenizer).read_text(encoding="utf-8")
        return TextTokenizer(content, self.config.text)

    @cached_property
    def head(self) -> FrameHead | None:
        """Makes one vector of a clip's frame embeddings; None where their mean does."""
        if self.config.head is None:
            return None
        return FrameHead(self.config.head, self._network(self._layout.head))

    @cached_property
    def _image_tower(self) -> Tower:
        return Tower(self._network(self._layout.vision))

    @cached_property
    def _text_tower(self) -> Tower:
        return Tower(self._network(self._layout.text))

    def _network(self, name: str) -> Path:
        """Return a graph that is checked with the weights beside it."""
        for beside in self._layout.others:
            if beside.startswith(name):
                self._file(beside)
        return self._file(name)

    def _file(self, name: str) -> Path:
        path = self._folder / name
        try:
            whole = has_sha256(path, self._sha256.get(name, ""))
        except OSError:
            whole = False
        if not whole:
            raise self._damaged(name)
        return path

    def _damaged(self, name: str) -> WeightsCorrupt:
        return WeightsCorrupt(
            f"the backbone in {self._folder} is damaged: {name} does not have the expected hash",
            NextStep("remove it and install it again", f"weights remove {self._folder.name}"),
        )
