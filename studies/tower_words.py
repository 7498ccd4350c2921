"""Give a trained text tower words of other languages, each with a vector to start from.

The WordPiece of the English tower cuts a foreign word into meaningless pieces. Frequent words of the other
languages become tokens of their own. Tokens that no language here can spell (other scripts, unused ones) make
room for them, and so do rare English ones. The vectors of the new words come from translated sentences, by a
ridge regression

    W = (XᵀX + λI)⁻¹ XᵀY

with `X [pairs, tokens]` the tokens of the translations and `Y [pairs, dim]` the sums of the English tokens'
vectors: a word starts as what it stands for in English, and training continues from there. Tokens that
English text hardly has and a language often ("un", "strand") get the vector of that language, too.
"""

from __future__ import annotations

import gzip
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from wordreel.models.joint.adapter import BIAS, CARD, FILE, WEIGHT
from wordreel.models.joint.text_tower import NETWORK, TOKENIZER
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.search.words.understanding import WORD
from wordreel.types import Float32

RIDGE = 3.0  # λ: a word that occurs a few times stays near zero
WORDS = {"de": 1800, "fr": 1300, "cs": 2200, "it": 1500, "es": 1100, "pt": 1100, "nl": 1100}  # new tokens
TOKENS = 34_900  # of the whole vocabulary: what fits into a file of 25 MB
LISTED = 2  # times that a word of a language occurs in its pairs to be listed
RARE = 12  # times at most that English text has a token which another language takes over
OFTEN = 8  # times at least that this language has it
MORE = 15  # times as large its share of the language must be
FAR_MORE = 40  # times as large it must be where English has it more often
USUAL = 3  # times that a word of English text occurs, which then stays English
TABLE = "network.embeddings.word_embeddings.weight"
Pairs = Sequence[tuple[str, str]]  # English, and its translation


def read_shipped(folder: Path) -> tuple[dict[str, Tensor], str, dict[str, Any]]:
    """Return state, tokenizer and card of a tower from the files that ship, rounded as those are."""
    graph = onnx.load(folder / NETWORK).graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    state = {name.removeprefix("tower."): a for name, a in arrays.items() if name.startswith("tower.")}
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            name = node.input[1].removesuffix("_output_0.bytes").rpartition("/")[0]
            blocks = arrays[node.input[1]].astype(np.float32) - 128
            scales = arrays[node.input[2]].reshape(*blocks.shape[:2], 1)
            matrix = (blocks * scales).reshape(len(blocks), -1)
            state[f"{name.removeprefix('/').replace('/', '.')}.weight"] = matrix
        elif node.op_type == "Add" and node.input[1].startswith("onnx::"):
            state["network.embeddings.token_type_embeddings.weight"] = arrays[node.input[1]]
    state[TABLE] = arrays["words.bytes"].astype(np.float32) * arrays["words.scales"].astype(np.float32)
    about, adapter = map_safetensors(folder / FILE.name)
    state |= {"adapter.weight": adapter[WEIGHT], "adapter.bias": adapter[BIAS]}
    tensors = {name: torch.from_numpy(np.array(array, np.float32)) for name, array in state.items()}
    return tensors, (folder / TOKENIZER).read_text(encoding="utf-8"), json.loads(about[CARD])


def complete(state: Mapping[str, Tensor], fresh: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a full state: rows and tensors that the files leave out (unused positions) as in `fresh`."""
    full = {name: tensor.clone() for name, tensor in fresh.items()}
    for name, tensor in state.items():
        if name == TABLE or tensor.shape == full[name].shape:
            full[name] = tensor
        else:
            full[name][: tensor.numel() // full[name][0].numel()] = tensor.reshape(-1, *full[name].shape[1:])
    return full


def add_words(
    table: Float32,
    tokenizer: str,
    pairs: Mapping[str, Pairs],
    english: Sequence[str],
    counts: Mapping[str, int] = WORDS,
) -> tuple[Float32, str, list[int]]:
    """Return the table of word vectors, the tokenizer with the new words, and the rows that are to learn.

    Args:
        table: The vectors of the tokens, `[tokens, dim]`.
        tokenizer: Its file's text.
        pairs: English sentences with their translations, by language.
        english: Sentences whose words stay English, and whose tokens are not given up.
        counts: How many new words each language gets.
    """
    described = json.loads(tokenizer)
    vocabulary: dict[str, int] = described["model"]["vocab"]
    usual = _words(tokenizer, english)
    spoken = {language: _words(tokenizer, [text for _, text in own]) for language, own in pairs.items()}
    first_pieces = _first_pieces(tokenizer, usual)
    taken = vocabulary.keys() | {word for word, count in usual.items() if count >= USUAL}
    cut = _would_cut(first_pieces, usual)
    new: list[str] = []
    words = _taken_over(vocabulary, usual, first_pieces, spoken)
    for language, counted in spoken.items():
        shares = usual.total() / FAR_MORE / max(1, counted.total())
        unknown = [
            word
            for word, count in counted.most_common()
            if word not in taken and word.isalpha() and cut[word] <= count * shares
        ]
        new += unknown[: counts[language]]
        words[language] += unknown[: counts[language]]
        taken |= set(new)
    lent = {word for own in words.values() for word in own}
    room = min(TOKENS, len(vocabulary) + len(new)) - len(new)
    tokens = [*_kept(vocabulary, usual, lent, room), *new]
    numbers = {token: number for number, token in enumerate(tokens)}
    described["model"]["vocab"] = numbers
    _renumber(described)
    extended = json.dumps(described, ensure_ascii=False)
    start = np.zeros((len(tokens), table.shape[1]), np.float32)
    old = tokens[: len(tokens) - len(new)]
    start[: len(old)] = table[[vocabulary[token] for token in old]]
    found = {language: _vectors(start, extended, own) for language, own in pairs.items()}
    learning = []
    for language, own in words.items():
        rows = [numbers[word] for word in own]
        start[rows] = found[language][rows]
        learning += rows
    return start, extended, sorted(learning)


def _first_pieces(tokenizer: str, usual: Counter[str]) -> dict[str, str]:
    """Return the first piece of each usual English word that is cut into several."""
    made = _tokenizer(tokenizer)
    words = [word for word, count in usual.items() if count >= USUAL]
    cut = (made.encode(word, add_special_tokens=False).tokens for word in words)
    return {word: pieces[0] for word, pieces in zip(words, cut, strict=True) if len(pieces) > 1}


def _would_cut(first_pieces: Mapping[str, str], usual: Counter[str]) -> Counter[str]:
    """Count the usual English words that each of these beginnings would cut otherwise, if it were a token.

    >>> sorted(_would_cut({"giraffe": "gi"}, Counter(giraffe=7)).items())
    [('gir', 7), ('gira', 7), ('giraf', 7), ('giraff', 7)]
    """
    counted: Counter[str] = Counter()
    for word, piece in first_pieces.items():
        counted.update({word[:end]: usual[word] for end in range(len(piece) + 1, len(word))})
    return counted


def _taken_over(
    vocabulary: Mapping[str, int],
    usual: Counter[str],
    first_pieces: Mapping[str, str],
    spoken: Mapping[str, Counter[str]],
) -> dict[str, list[str]]:
    """Return the tokens that belong to another language rather than to English, by language."""
    english = usual.copy()
    for word, piece in first_pieces.items():
        english[piece] += usual[word]
    sizes = {language: max(1, counted.total()) for language, counted in spoken.items()}
    words: dict[str, list[str]] = {language: [] for language in spoken}
    for token in vocabulary:
        if token.isalpha() and len(token) > 1:
            language = max(spoken, key=lambda name: spoken[name][token] / sizes[name])
            least = MORE if english[token] <= RARE else FAR_MORE
            share = least * max(1, english[token]) / max(1, usual.total())
            if spoken[language][token] >= max(OFTEN, share * sizes[language]):
                words[language].append(token)
    return words


def write_word_lists(pairs: Mapping[str, Pairs], folder: Path) -> None:
    """Write the words that occur at least twice in each language, as `LANGUAGE.txt.gz`."""
    for language, own in pairs.items():
        counted = Counter(word for _, text in own for word in WORD.findall(text.lower()))
        words = sorted(word for word, count in counted.items() if count >= LISTED)
        (folder / f"{language}.txt.gz").write_bytes(gzip.compress("\n".join(words).encode(), mtime=0))


def _words(tokenizer: str, texts: Sequence[str]) -> Counter[str]:
    """Count the words of texts as the tokenizer sees them."""
    made = _tokenizer(tokenizer)
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(w for w, _ in made.pre_tokenizer.pre_tokenize_str(made.normalizer.normalize_str(text)))
    return counted


def _kept(vocabulary: Mapping[str, int], usual: Counter[str], lent: set[str], room: int) -> list[str]:
    """Return at most `room` tokens, in order: superfluous ones go first, then the last unusual words."""
    tokens = [token for token in vocabulary if not _superfluous(token)]
    rare = [
        token
        for token in tokens
        if token.isalpha() and len(token) > 1 and not usual[token] and token not in lent
    ]
    given_up = set(rare[len(rare) - max(0, len(tokens) - room) :])
    return [token for token in tokens if token not in given_up]


def _superfluous(token: str) -> bool:
    """Whether a token is unused, or of a script that none of the languages is written in.

    >>> [_superfluous(token) for token in ("[unused7]", "##の", "hund", "é", "[CLS]")]
    [True, True, False, False, False]
    """
    letters = token.removeprefix("##")
    return token.startswith("[unused") or any(
        ord(letter) > 127 and "LATIN" not in unicodedata.name(letter, "") for letter in letters
    )


def _renumber(described: dict[str, Any]) -> None:
    numbers = described["model"]["vocab"]
    for token in described["added_tokens"]:
        token["id"] = numbers[token["content"]]
    for special in described["post_processor"]["special_tokens"].values():
        special["ids"] = [numbers[token] for token in special["tokens"]]


def _vectors(table: Float32, tokenizer: str, pairs: Pairs) -> Float32:
    """Return what each token stands for in English `[tokens, dim]`; zeros for those that never occur."""
    made = _tokenizer(tokenizer)
    english, foreign = (
        [e.ids for e in made.encode_batch([pair[side] for pair in pairs], add_special_tokens=False)]
        for side in (0, 1)
    )
    occurring = sorted({number for ids in foreign for number in ids})
    column = {number: place for place, number in enumerate(occurring)}
    gram = np.zeros((len(occurring), len(occurring)), np.float32)
    right = np.zeros((len(occurring), table.shape[1]), np.float32)
    for start in range(0, len(pairs), 4096):
        block = slice(start, start + 4096)
        x = np.zeros((len(foreign[block]), len(occurring)), np.float32)
        for row, ids in enumerate(foreign[block]):
            np.add.at(x[row], [column[number] for number in ids], 1)
        y = np.stack([table[ids].sum(axis=0) for ids in english[block]])
        gram += x.T @ x
        right += x.T @ y
    gram[np.diag_indices(len(gram))] += RIDGE
    vectors = np.zeros_like(table)
    vectors[occurring] = np.linalg.solve(gram, right)
    return vectors


def _tokenizer(text: str) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_truncation()
    return tokenizer
