"""The tokenizers of CLIP-like models, as their `tokenizer.json` describes them, and OpenAI's as one."""

from __future__ import annotations

import gzip
import hashlib
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
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


CLIP_VOCABULARY = "clip-vocabulary"  # OpenAI's byte pairs, for CLIPs whose files bring no tokenizer
TOKENIZER = "tokenizer.json"
MAX_BYTES = 64 * 2**20
MERGES = 48894
WORD = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
START, END, WORD_END = "<|startoftext|>", "<|endoftext|>", "</w>"


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write the tokenizer from `bpe_simple_vocab_16e6.txt.gz`; the weight store calls this."""
    ((_, path),) = files.items()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read(MAX_BYTES).split("\n")[1 : MERGES + 1]
    (out / TOKENIZER).write_text(tokenizer_json([line.split(" ") for line in lines]), encoding="utf-8")


def tokenizer_json(merges: list[list[str]]) -> str:
    """Return the tokenizer of a list of merges: 256 bytes, the same at a word's end, merges, two marks."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    single = _byte_letters()
    tokens = [*single, *(letter + WORD_END for letter in single), *(a + b for a, b in merges), START, END]
    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = [(first, second) for first, second in merges]
    tokenizer = Tokenizer(models.BPE(vocab=numbers, merges=pairs, end_of_word_suffix=WORD_END))
    steps = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    words = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    marks = [(START, numbers[START]), (END, numbers[END])]
    tokenizer.post_processor = processors.TemplateProcessing(f"{START} $A {END}", special_tokens=marks)
    return str(tokenizer.to_str())


def _byte_letters() -> list[str]:
    """Return a letter for each byte, printed ones first: itself if it is printed, else one from 256 on."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = len(set(range(256)) - set(printed))
    return [*map(chr, printed), *(chr(256 + number) for number in range(others))]
