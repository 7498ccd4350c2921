"""Tokenizers of CLIP-like models: text in, padded token ids out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.config import TokenizerConfig
from wordreel.backbones.text_cleaning import clean
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Int64

CLIP_VOCABULARY = "clip-vocabulary"
MAX_CHARACTERS = 20_000
MARKS = {
    "clip": ("<|startoftext|>", "<|endoftext|>"),
    "siglip": (None, "</s>"),
    "siglip2": (None, "<eos>"),
}
"""What stands before and after every text."""


class ClipTokenizer:
    """Token ids as a backbone's publisher computes them. What users type is never read as a special token.

    Args:
        content: A tokenizer file written by `tokenizer_files`.
        config: The kind of tokenizer, its length and its cleaning.
    """

    def __init__(self, content: str, config: TokenizerConfig) -> None:
        from tokenizers import Tokenizer

        self.config = config
        facts = [json.loads(content), config.kind, config.padding, config.cleaning]
        self.fingerprint = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        self._tokenizer: Any = Tokenizer.from_str(content)
        before, after = MARKS[config.kind]
        self._before = [] if before is None else [self._tokenizer.token_to_id(before)]
        self._after = self._tokenizer.token_to_id(after)

    @classmethod
    def from_file(cls, path: Path, config: TokenizerConfig) -> ClipTokenizer:
        """The tokenizer in a file that `tokenizer_files` wrote."""
        return cls(path.read_text(encoding="utf-8"), config)

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str], length: int | None = None) -> tuple[Int64, Bool]:
        """`ids [n, length]` and which of them are not padding, `mask [n, length]`.

        A text that is too long is cut; the mark after it stays.
        """
        length = self.config.length if length is None else length
        cleaned = [clean(_valid(text), self.config) for text in texts]
        ids = np.full((len(texts), length), self.config.padding, np.int64)
        mask = np.zeros(ids.shape, bool)
        encoded = self._tokenizer.encode_batch_fast(cleaned, add_special_tokens=False)
        for row, one in enumerate(encoded):
            tokens = [*self._before, *one.ids][: length - 1]
            ids[row, : len(tokens) + 1] = [*tokens, self._after]
            mask[row, : len(tokens) + 1] = True
        return ids, mask


def clip_tokenizer(store: WeightStore | None = None, length: int = 77) -> ClipTokenizer:
    """OpenAI's tokenizer, which CLIP4Clip, CLIP2Video, TS2-Net, MobileCLIP and PE-Core use too.

    Raises `WeightsMissing` until `WeightStore.fetch("clip-vocabulary")`, 1.5 MB, has fetched its vocabulary.
    """
    store = store or WeightStore()
    return ClipTokenizer.from_file(store.file(CLIP_VOCABULARY), TokenizerConfig(length=length))


def _valid(text: str) -> str:
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
