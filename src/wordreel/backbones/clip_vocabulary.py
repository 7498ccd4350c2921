"""OpenAI's byte-pair vocabulary as a `tokenizer.json`, for CLIPs whose files bring none."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

NAME = "clip-vocabulary"
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
