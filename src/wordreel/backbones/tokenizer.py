"""The tokenizers of CLIP-like models, as their `tokenizer.json` describes them."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from wordreel.backbones.config import TextSettings
from wordreel.errors import NextStep, WeightsError
from wordreel.types import Bool, Int64

MAX_CHARACTERS = 20_000
PUNCTUATION = str.maketrans("", "", string.punctuation)


def open_tokenizer(content: str) -> Any:
    """Return the `tokenizers.Tokenizer` in a file's content."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(content)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library also panics, which is not an Exception
        raise WeightsError(
            f"the tokenizer is damaged: {str(error)[:200]}",
            NextStep("take tokenizer.json from where the model is published"),
        ) from None


class TextTokenizer:
    """Token ids of texts. What users type is never read as a special token.

    Args:
        content: A `tokenizer.json`; its own steps add the marks before and behind a text.
        settings: Length and padding.
    """

    def __init__(self, content: str, settings: TextSettings) -> None:
        self.settings = settings
        self.fingerprint = hashlib.sha256(f"{content}{settings}".encode()).hexdigest()[:16]
        self._tokenizer = open_tokenizer(content)
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    @property
    def vocabulary(self) -> int:
        """How many ids there are."""
        return 1 + max(self._tokenizer.get_vocab().values(), default=-1)

    def encode(self, texts: Sequence[str], length: int | None = None) -> tuple[Int64, Bool]:
        """Return `ids [n, length]` and which of them are not padding, `mask [n, length]`.

        A text that is too long is cut; the mark after it stays.
        """
        length = self.settings.length if length is None else length
        self._tokenizer.enable_truncation(length)
        encoded = self._tokenizer.encode_batch_fast([self._clean(text) for text in texts])
        if self.settings.shorter:
            length = max((len(one.ids) for one in encoded), default=1)
        ids = np.full((len(texts), length), self.settings.padding, np.int64)
        mask = np.zeros(ids.shape, bool)
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)], mask[row, : len(one.ids)] = one.ids, True
        return ids, mask

    def _clean(self, text: str) -> str:
        valid = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
        if not self.settings.canonicalize:
            return valid
        return " ".join(valid.replace("_", " ").translate(PUNCTUATION).lower().split())
