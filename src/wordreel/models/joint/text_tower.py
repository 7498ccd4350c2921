"""The text tower: any text to a unit vector in the space of the pictures. It comes with wordreel.

It is the only text encoder of the product: for queries, spoken words, words on screen and concepts. The
network (`text_tower.onnx`, `input_ids` and `attention_mask` `[n, tokens]` to `embedding [n, 512]`) holds its
weights in 8 bits and runs as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.runtime.sessions import Network
from wordreel.runtime.stamped_hash import STAMPS, sha256_of
from wordreel.types import Float32
from wordreel.util.lru_cache import LRUCache

FOLDER = Path(__file__).parent
NETWORK, TOKENIZER = "text_tower.onnx", "tokenizer.json"
DIM = 512
VERSION = 1  # raise it when tokenising changes
MAX_TOKENS = 64
MAX_CHARACTERS = 20_000  # far more than 64 tokens of any prose, little enough to tokenise at once
CACHED = 4096  # queries, and lines whose hits are explained: 8 MiB
MAX_CACHED_BATCH = 256  # texts; a longer list is a bank or a film, encoded once


class TextTower:
    """Encodes texts as unit vectors `[n, 512]`; only the first 64 tokens of each count."""

    def __init__(self, root: Path, folder: Path = FOLDER) -> None:
        """`root` is the folder of the weight store, where the hashes of large files are cached."""
        self.root = root
        self._network_file, self._tokenizer_file = folder / NETWORK, folder / TOKENIZER
        self._lock = Lock()
        self._cache = LRUCache[str, Float32](CACHED)

    @cached_property
    def fingerprint(self) -> str:
        """Identifies both files."""
        try:
            files = (self._network_file, self._tokenizer_file)
            hashes = [sha256_of(file, self.root / STAMPS) for file in files]
        except OSError as error:
            raise self._damaged(error) from error
        return hashlib.sha256("\x1f".join([str(VERSION), *hashes]).encode()).hexdigest()[:16]

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return one unit row per text, in order; the same text has the same row in any list."""
        if isinstance(texts, str):
            raise TypeError("encode takes a list of texts; put the text into a list")
        known = {text: self._cache.get(text) for text in texts}
        new = [text for text, vector in known.items() if vector is None]
        known |= dict(zip(new, self._encode(new), strict=True))
        if len(new) <= MAX_CACHED_BATCH:
            for text in new:
                if (vector := known[text]) is not None:
                    self._cache.put(text, vector)
        rows = np.zeros((len(texts), DIM), np.float32)
        for row, text in enumerate(texts):
            rows[row] = known[text]
        return rows

    @property
    def device(self) -> str:
        """Where the network runs, for people."""
        with self._lock:
            return str(self._loaded)

    def _encode(self, texts: Sequence[str]) -> Float32:
        """Encode each text in a run of its own.

        The network rounds to 8 bits by the largest value of a run, so texts in one run would change each
        other's rows.
        """
        rows = np.zeros((len(texts), DIM), np.float32)
        for row, encoding in enumerate(self._tokenizer.encode_batch([_clean(text) for text in texts])):
            ids = np.array([encoding.ids], np.int64)
            rows[row] = self._network(input_ids=ids, attention_mask=np.ones_like(ids))["embedding"][0]
        return rows

    def _network(self, **inputs: Any) -> dict[str, Float32]:
        with self._lock:
            network = self._loaded
        return network(**inputs)

    @cached_property
    def _loaded(self) -> Network:
        try:
            return Network(self._network_file)
        except Exception as error:  # onnxruntime's errors share no class
            raise self._damaged(error) from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
        except Exception as error:  # the package raises bare exceptions
            raise self._damaged(error) from error
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()
        return tokenizer

    def _damaged(self, error: Exception) -> WeightsCorrupt:
        return WeightsCorrupt(
            f"the text tower in {self._network_file.parent} cannot be used ({error})",
            NextStep("install wordreel again"),
        )


def _clean(text: str) -> str:
    # Lone surrogates (file names that are not UTF-8) cannot cross into the tokenizer.
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
