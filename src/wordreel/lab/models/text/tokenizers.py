"""Caption tokenizers: text in, padded arrays of token ids or word vectors out.

| `TextConfig.source` | tokens | needs |
|---|---|---|
| `minilm` | MiniLM's vectors `[t, 384]`; its numbers if `words` is "bert" | – |
| `wordpiece:FOLDER` | BERT's numbers, put as MMT's authors do, lower case | `vocab.txt` or `tokenizer.json` |
| `tokenizer:FOLDER` | any tokenizer's numbers (GPT, GPT-2) | `tokenizer.json` |
| `word2vec:FILE` | word vectors | the file |
| a name or folder, `words="huggingface"` | that tokenizer's numbers | the transformers library |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsError, WeightsMissing
from wordreel.lab.models.config import TextConfig
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool
from wordreel.util.checksum import file_sha256

_LISTED = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each few for from further had has have
having he her here hers herself him himself his how i if in into is it its itself just me more most
my myself no nor not now of off on once only or other our ours ourselves out over own s same she
should so some such t than that the their theirs them themselves then there these they this those
through to too under until up very was we were what when where which while who whom why will with
would you your yours yourself yourselves
"""
STOP = "."
STOP_WORDS = frozenset(_LISTED.split())


def without_stop_words(text: str) -> str:
    """Return the words that carry meaning; "." if none do.

    >>> without_stop_words("A man is riding on a horse!"), without_stop_words("to be or not to be")
    ('man riding horse', '.')
    """
    words = ["".join(c for c in word if c.isalnum()) for word in text.split()]
    content_words = [word for word in words if word and word.lower() not in STOP_WORDS]
    return " ".join(content_words) or STOP


def sentence(text: str, most: int = 0) -> str:
    """Return a caption as MMT's authors write it: with a capital, a full stop and `most` words.

    >>> sentence("a DOG  runs")
    'A dog runs.'
    """
    words = text.split()
    line = " ".join(words[:most] if most else words).strip()
    if not line or line[-1] not in ".?!":
        line += STOP
    return line.capitalize()


TokenizeFunction = Callable[[Sequence[str]], list[NDArray[Any]]]
MAX_CHARACTERS = 20_000
MINILM_PACKAGE = "minilm"
BATCH = 64  # captions that MiniLM reads at once
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt")


@dataclass(frozen=True)
class CaptionTokenizer:
    """Turns captions into tokens. `fingerprint` changes whenever a token would."""

    rows: TokenizeFunction
    fingerprint: str
    most: int
    keep_stop_words: bool = True

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[Any], Bool]:
        """Return `tokens [q, t(, dim)]`, cut to `max_tokens` and padded with zeros, and `mask [q, t]`."""
        cleaned = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        if not self.keep_stop_words:
            cleaned = [without_stop_words(text) for text in cleaned]
        return padded([row[: self.most] if self.most else row for row in self.rows(cleaned)])


def padded(rows: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], Bool]:
    """Return arrays of any length as one, and which of its rows are real.

    >>> padded([np.array([1, 2]), np.array([3])])[0].tolist()
    [[1, 2], [3, 0]]
    """
    longest = max((len(row) for row in rows), default=0)
    like = rows[0] if rows else np.zeros(0, np.float32)
    tokens = np.zeros((len(rows), longest, *like.shape[1:]), like.dtype)
    mask = np.zeros(tokens.shape[:2], bool)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = row
        mask[number, : len(row)] = True
    return tokens, mask


def open_tokenizer(
    text: TextConfig, folder: Path | None = None, store: WeightStore | None = None
) -> CaptionTokenizer:
    """Return the tokenizer that a configuration names; relative paths are relative to `folder`."""
    if text.words == "huggingface":
        return _huggingface(text)
    kind, _, name = text.source.partition(":")
    path = (folder or Path()) / name
    if kind == "minilm":
        store = store or WeightStore()
        tokenizer, _ = _tokenizer(store.file(MINILM_PACKAGE, "tokenizer.json").parent)
        tokenizer.enable_truncation(text.max_tokens or 256)
        facts = store.source_hash(MINILM_PACKAGE)[:16]
        if text.words == "bert":
            return _with_limits(text, partial(_ids, tokenizer), facts)
        return _with_limits(text, _MiniLMVectors(store, partial(_ids, tokenizer)), facts)
    if kind in ("wordpiece", "tokenizer"):
        tokenizer, facts = _tokenizer(path)
        if kind == "wordpiece":
            tokenizer, facts = _lowered(tokenizer, facts)
            return _with_limits(text, lambda texts: _wordpieces(tokenizer, texts, text.max_tokens), facts)
        return _with_limits(text, partial(_ids, tokenizer), facts)
    if kind == "word2vec":
        from wordreel.lab.models.text.word_vectors import read_word_vectors

        if not path.is_file():
            raise WeightsMissing(f"the word vectors {path} are missing", NextStep("put the file back"))
        table = read_word_vectors(path)
        return _with_limits(text, lambda texts: [table.look_up(one) for one in texts], file_sha256(path)[:16])
    raise WeightsError(
        f"captions of this model are {text.source!r} features computed elsewhere; it cannot encode new text",
        NextStep("convert the checkpoint with what encodes its text", "use CHECKPOINT --text FILE_OR_FOLDER"),
    )


def text_files(folder: Path, text: TextConfig) -> tuple[str, ...]:
    """Return the files of a checkpoint folder, relative to it, that its captions need."""
    kind, _, path = text.source.partition(":")
    if text.words == "huggingface" or external_text(text):
        return ()
    wanted = {"wordpiece": TOKENIZER_FILES, "tokenizer": TOKENIZER_FILES, "word2vec": ("",)}.get(kind, ())
    names = [str(Path(path) / name) for name in wanted]
    return tuple(name for name in names if (folder / name).is_file())


def external_text(text: TextConfig) -> str:
    """Return what captions need that is not in the checkpoint folder; empty if there is nothing."""
    kind, _, path = text.source.partition(":")
    if text.words == "huggingface":
        return text.source
    inside = not Path(path).is_absolute() and ".." not in Path(path).parts
    return "" if kind not in ("wordpiece", "tokenizer", "word2vec") or inside else path


def _with_limits(text: TextConfig, rows: TokenizeFunction, facts: str) -> CaptionTokenizer:
    # Tokenizers with an end mark cut their own; the rest is cut here.
    return CaptionTokenizer(rows, f"{text.source}:{facts}", text.max_tokens, text.stop_words)


class _MiniLMVectors:
    """MiniLM's vectors of the tokens of captions."""

    def __init__(self, store: WeightStore, ids: TokenizeFunction) -> None:
        self._store, self._ids = store, ids

    @cached_property
    def _network(self) -> Any:
        from wordreel.lab.models.text.pretrained import minilm_network

        return minilm_network(self._store)

    def __call__(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        import torch

        ids = self._ids(texts)
        order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
        vectors: dict[int, NDArray[Any]] = {}
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            tokens, mask = padded([ids[number] for number in chosen])
            with torch.no_grad():
                states = self._network(torch.from_numpy(tokens), torch.from_numpy(mask)).numpy()
            vectors |= {number: states[row, mask[row]].copy() for row, number in enumerate(chosen)}
        return [vectors[number] for number in range(len(ids))]


def _tokenizer(path: Path) -> tuple[Any, str]:
    from tokenizers import BertWordPieceTokenizer, Tokenizer

    whole, vocabulary = (path / name for name in TOKENIZER_FILES)
    if whole.is_file():
        tokenizer: Any = Tokenizer.from_file(str(whole))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer, file_sha256(whole)[:16]
    if vocabulary.is_file():
        return BertWordPieceTokenizer(str(vocabulary), lowercase=True), file_sha256(vocabulary)[:16]
    raise WeightsMissing(
        f"no tokenizer.json or vocab.txt in {path}", NextStep("copy the tokenizer's file there")
    )


def _lowered(tokenizer: Any, facts: str) -> tuple[Any, str]:
    """Return a tokenizer that reads small letters only, as MMT's does although its network knows capitals."""
    from tokenizers.normalizers import BertNormalizer

    if tokenizer.normalizer is not None and tokenizer.normalizer.normalize_str("A") == "a":
        return tokenizer, facts
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    return tokenizer, f"{facts}:lower"


def _ids(tokenizer: Any, texts: Sequence[str], **options: bool) -> list[NDArray[Any]]:
    return [np.array(one.ids, np.int64) for one in tokenizer.encode_batch(list(texts), **options)]


def _wordpieces(tokenizer: Any, texts: Sequence[str], most: int) -> list[NDArray[Any]]:
    """[CLS] … [SEP]; a caption that is cut ends in [SEP] all the same."""
    rows = _ids(tokenizer, [sentence(text, most) for text in texts])
    return [np.append(row[: most - 1], row[-1]) if most and len(row) > most else row for row in rows]


def _huggingface(text: TextConfig) -> CaptionTokenizer:
    from wordreel.lab.models.text.caption_encoder import library

    tokenizer = library().AutoTokenizer.from_pretrained(text.source, local_files_only=True)
    most = text.max_tokens or None
    # TeachText reads with these two without the marks around a sentence.
    plain = type(tokenizer).__name__.startswith(("T5", "XLNet"))
    options = {"add_special_tokens": False} if plain else {}

    def rows(texts: Sequence[str]) -> list[NDArray[Any]]:
        encoded = tokenizer(list(texts), truncation=most is not None, max_length=most, **options)["input_ids"]
        return [np.array(ids, np.int64) for ids in encoded]

    return _with_limits(text, rows, "huggingface")
