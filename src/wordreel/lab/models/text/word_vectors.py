"""word2vec, GloVe and GrOVLE: files of one vector per word, in the binary or the text form of word2vec."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np

from wordreel.errors import WeightsError
from wordreel.types import Float32

MOST_WORDS, MOST_NUMBERS, LONGEST = 10_000_000, 10_000, 1_000


class WordVectors:
    """Words and their vectors `[words, dim]`."""

    def __init__(self, words: list[str], vectors: Float32) -> None:
        self.vectors = vectors
        self.number = {word: at for at, word in reversed(list(enumerate(words)))}

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    def look_up(self, text: str) -> Float32:
        """Look up the caption's known words `[n, dim]`, as they are or in lower case.

        Return one row of zeros if none is known.

        >>> table = WordVectors(["dog", "runs"], np.eye(2, dtype=np.float32))
        >>> table.look_up("The Dog runs.").tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        bare = ("".join(c for c in word if c.isalnum() or c in "-'") for word in text.split())
        rows = [n for word in bare if (n := self.number.get(word, self.number.get(word.lower()))) is not None]
        return self.vectors[rows] if rows else np.zeros((1, self.dim), np.float32)


def read_word_vectors(path: Path, most: int | None = None) -> WordVectors:
    """Return the first `most` words of a file, or all; the format is recognised by content."""
    with path.open("rb") as file:
        first = file.readline(LONGEST).split()
        if len(first) == 2 and all(part.isdigit() for part in first):
            count, dim = int(first[0]), int(first[1])
            if not (0 < count <= MOST_WORDS and 0 < dim <= MOST_NUMBERS):
                raise WeightsError(f"{path.name} says it holds {count} words of {dim} numbers; not read")
            start = file.tell()
            sample = file.readline(LONGEST + 32 * dim).split()
            file.seek(start)
            count = min(count, most or count)
            if len(sample) == dim + 1 and _numbers(sample[1:]):
                return _read_text(path, [file.readline() for _ in range(count)], dim)
            return _read_binary(path, file, count, dim)
        dim = len(first) - 1  # GloVe: no heading
        file.seek(0)
        lines = [line for _, line in zip(range(most or MOST_WORDS), file, strict=False)]
        return _read_text(path, lines, dim)


def _numbers(parts: list[bytes]) -> bool:
    try:
        return bool(np.isfinite(np.array(parts, np.float64)).all())
    except ValueError:
        return False


def _read_text(path: Path, lines: list[bytes], dim: int) -> WordVectors:
    words, rows = [], []
    for number, line in enumerate(lines):
        parts = line.rsplit(maxsplit=dim)
        if dim < 1 or len(parts) != dim + 1 or not _numbers(parts[1:]):
            raise WeightsError(f"{path.name}: line {number + 1} is not a word and {dim} numbers")
        words.append(parts[0].decode("utf-8", "replace"))
        rows.append(np.array(parts[1:], np.float32))
    return WordVectors(words, np.stack(rows))


def _read_binary(path: Path, file: BinaryIO, count: int, dim: int) -> WordVectors:
    vectors = np.zeros((count, dim), np.float32)
    words: list[str] = []
    data, at, size = b"", 0, 4 * dim
    for number in range(count):
        while (space := data.find(b" ", at)) < 0 or len(data) < space + 1 + size:
            more = file.read(1 << 22)
            if not more or (space < 0 and len(data) - at > LONGEST):
                raise WeightsError(f"{path.name} is damaged or cut short at word {number + 1} of {count}")
            data, at = data[at:] + more, 0
        words.append(data[at:space].lstrip(b"\n").decode("utf-8", "replace"))
        vectors[number] = np.frombuffer(data, "<f4", dim, space + 1)
        at = space + 1 + size
    return WordVectors(words, vectors)
