"""Read the vocabularies that CLIP-like models are published with, and write them as one tokenizer file.

Only the tokens, merges, scores and the character map of a published file are used. The pipeline around them
(normalizers, regular expressions, special tokens) is ours: a file cannot bring its own.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wordreel.backbones.config import TokenizerConfig
from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.protobuf import fields

CONVERTER_VERSION = 1
TOKENIZER = "tokenizer.json"
FILES = (TOKENIZER, "spiece.model", "vocab.json", "merges.txt")
MAX_BYTES = 64 * 2**20
MAX_TOKENS = 1_000_000
OPENAI_MERGES = 48894
WORD = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
END = "</w>"
SPACE = "▁"
UNKNOWN_PIECE = 2  # the kind of a piece in a SentencePiece model


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write OpenAI's tokenizer from `bpe_simple_vocab_16e6.txt.gz`; the weight store calls this."""
    ((_, path),) = files.items()
    (out / TOKENIZER).write_text(from_openai_merges(path), encoding="utf-8")


def from_openai_merges(path: Path) -> str:
    """The tokenizer of OpenAI's list of merges: 256 bytes, the same at a word's end, merges, two marks."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read(MAX_BYTES).split("\n")[1 : OPENAI_MERGES + 1]
    merges = [_pair(line) for line in lines]
    single = _byte_letters()
    tokens = [*single, *(letter + END for letter in single), *(a + b for a, b in merges)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    return _clip({token: number for number, token in enumerate(tokens)}, merges, TokenizerConfig())


def from_folder(folder: Path, config: TokenizerConfig, vocabulary: int) -> str:
    """The tokenizer of a folder in Hugging Face layout, for a text tower with that many token embeddings."""
    if config.kind == "siglip" and not (folder / TOKENIZER).is_file():
        content = _unigram(*_read_sentencepiece(_read(folder, "spiece.model")))
        return check_vocabulary(content, config, vocabulary)
    if config.kind == "clip" and not (folder / TOKENIZER).is_file():
        tokens = _read_json(folder, "vocab.json")
        lines = _read(folder, "merges.txt").decode("utf-8", "replace").split("\n")
        merges = [_pair(line) for line in lines if line.strip() and not line.startswith("#version")]
        return check_vocabulary(_clip(_vocabulary(tokens), merges, config), config, vocabulary)
    model, charsmap = _model(_read_json(folder, TOKENIZER))
    if config.kind == "siglip":
        scores = model.get("vocab")
        if model.get("type", "Unigram") != "Unigram" or not isinstance(scores, list):
            raise _wrong(f"{TOKENIZER} is not the unigram vocabulary of a SigLIP model")
        return check_vocabulary(_unigram(_pieces(scores), model.get("unk_id"), charsmap), config, vocabulary)
    if not isinstance(model.get("vocab"), dict) or not isinstance(model.get("merges"), list):
        raise _wrong(f"{TOKENIZER} is not the byte-pair vocabulary of a {config.kind} model")
    tokens, merges = _vocabulary(model["vocab"]), [_pair(merge) for merge in model["merges"]]
    content = _clip(tokens, merges, config) if config.kind == "clip" else _gemma(tokens, merges, config)
    return check_vocabulary(content, config, vocabulary)


def _clip(tokens: dict[str, int], merges: list[tuple[str, str]], config: TokenizerConfig) -> str:
    from tokenizers import Regex, models, normalizers, pre_tokenizers

    model = _build(models.BPE, vocab=tokens, merges=merges, end_of_word_suffix=END)
    lower = [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    words = [
        pre_tokenizers.Split(Regex(WORD), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    normalizer = normalizers.Sequence(lower) if config.cleaning == "huggingface" else None
    return _pipeline(model, normalizer, pre_tokenizers.Sequence(words))


def _unigram(pieces: list[tuple[str, float]], unknown: Any, charsmap: bytes) -> str:
    from tokenizers import Regex, models, normalizers, pre_tokenizers

    if type(unknown) is not int or not 0 <= unknown < len(pieces):
        raise _wrong("the vocabulary has no piece for unknown text")
    model = _build(models.Unigram, pieces, unknown, False)
    steps = [normalizers.Replace(Regex(" {2,}"), " ")]
    if charsmap:
        steps.insert(0, _build(normalizers.Precompiled, charsmap))
    return _pipeline(model, normalizers.Sequence(steps), pre_tokenizers.Metaspace(SPACE, "always"))


def _gemma(tokens: dict[str, int], merges: list[tuple[str, str]], config: TokenizerConfig) -> str:
    from tokenizers import models, normalizers

    options: dict[str, Any] = {"fuse_unk": True, "byte_fallback": True, "unk_token": "<unk>"}
    model = _build(models.BPE, vocab=tokens, merges=merges, **options)
    space = normalizers.Replace(" ", SPACE)
    lower = config.cleaning == "huggingface"
    return _pipeline(model, normalizers.Sequence([normalizers.Lowercase(), space]) if lower else space, None)


def _pipeline(model: Any, normalizer: Any, pre_tokenizer: Any) -> str:
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    return str(tokenizer.to_str())


def _build(make: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return make(*arguments, **options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library also panics, which is not an Exception
        raise _wrong(f"the vocabulary is damaged: {str(error)[:200]}") from None


def check_vocabulary(content: str, config: TokenizerConfig, vocabulary: int) -> str:
    """The content if the tower has an embedding for every token, and the marks are tokens."""
    from tokenizers import Tokenizer

    from wordreel.backbones.tokenizer import MARKS

    tokenizer: Any = _build(Tokenizer.from_str, content)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if largest >= vocabulary:
        raise _wrong(f"the vocabulary has the token {largest}, the text tower only {vocabulary} tokens")
    for mark in MARKS[config.kind]:
        if mark is not None and tokenizer.token_to_id(mark) is None:
            raise _wrong(f"the vocabulary has no {mark}")
    if config.padding >= vocabulary:
        raise _wrong(f"texts are padded with the token {config.padding}, which the tower does not have")
    return content


def _vocabulary(tokens: Any) -> dict[str, int]:
    if not isinstance(tokens, dict) or len(tokens) > MAX_TOKENS:
        raise _wrong("the vocabulary is no table of tokens")
    if not all(type(number) is int and 0 <= number < MAX_TOKENS for number in tokens.values()):
        raise _wrong("the vocabulary has token ids out of range")
    if len(set(tokens.values())) != len(tokens):
        raise _wrong("the vocabulary gives one id to two tokens")
    return {str(token): number for token, number in tokens.items()}


def _pieces(scores: list[Any]) -> list[tuple[str, float]]:
    try:
        pieces = [(str(piece), float(score)) for piece, score in scores[: MAX_TOKENS + 1]]
    except (TypeError, ValueError):
        raise _wrong(f"{TOKENIZER} has a piece without a score") from None
    if len(pieces) > MAX_TOKENS:
        raise _wrong(f"the vocabulary has more than {MAX_TOKENS} pieces")
    return pieces


def _model(content: Any) -> tuple[dict[str, Any], bytes]:
    """The model of a `tokenizer.json`, and the character map among its normalizers."""
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        raise _wrong(f"{TOKENIZER} holds no tokenizer")
    try:
        return model, base64.b64decode(_charsmap(content.get("normalizer")), validate=True)
    except ValueError:
        raise _wrong(f"the character map of {TOKENIZER} is damaged") from None


def _charsmap(normalizer: Any, depth: int = 0) -> str:
    """The character map of a normalizer, or of the first in a sequence that has one; empty if none has."""
    if not isinstance(normalizer, dict) or depth > 4:
        return ""
    steps = normalizer.get("normalizers")
    inner = [_charsmap(step, depth + 1) for step in steps] if isinstance(steps, list) else []
    own = normalizer.get("precompiled_charsmap")
    return next((found for found in (own, *inner) if isinstance(found, str) and found), "")


def _pair(merge: Any) -> tuple[str, str]:
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise _wrong(f"the vocabulary has a merge that is no pair: {str(merge)[:40]!r}")
    return parts[0], parts[1]


def _byte_letters() -> list[str]:
    """A letter for each byte: itself if it is printed, else one from 256 on; the printed ones first."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = len(set(range(256)) - set(printed))
    return [*map(chr, printed), *(chr(256 + number) for number in range(others))]


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    if not path.is_file():
        raise _wrong(f"{folder} has no tokenizer: none of {', '.join(FILES)}")
    if path.stat().st_size > MAX_BYTES:
        raise _wrong(f"{name} has more than {MAX_BYTES >> 20} MB")
    return path.read_bytes()


def _read_json(folder: Path, name: str) -> Any:
    try:
        return json.loads(_read(folder, name))
    except (ValueError, RecursionError) as error:
        raise _wrong(f"{name} is no JSON file: {str(error)[:100]}") from None


def _read_sentencepiece(data: bytes) -> tuple[list[tuple[str, float]], int | None, bytes]:
    """Pieces with their scores, the one for unknown text, and the character map of a SentencePiece model."""
    pieces: list[tuple[str, float]] = []
    unknown, charsmap = None, b""
    try:
        for field, value in fields(data):
            if field == 1:
                parts = dict(fields(value))
                pieces.append((parts[1].decode("utf-8"), struct.unpack("<f", parts.get(2, bytes(4)))[0]))
                if parts.get(3) == UNKNOWN_PIECE:
                    unknown = len(pieces) - 1
            elif field == 3:
                charsmap = bytes(dict(fields(value)).get(2, b""))
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, struct.error):
        raise _wrong("spiece.model is damaged") from None
    if len(pieces) > MAX_TOKENS:
        raise _wrong(f"the vocabulary has more than {MAX_TOKENS} pieces")
    return pieces, unknown, charsmap


def _wrong(message: str) -> WeightsError:
    return WeightsError(message, NextStep("take the tokenizer files from where the model is published"))
