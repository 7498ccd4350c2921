"""Sentences to 384 numbers with all-MiniLM-L6-v2 (Wang et al., 2020; Reimers and Gurevych, 2019)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32
from wordreel.util.lru_cache import LRUCache

WEIGHTS = "minilm"
DIM = 384
VERSION = 1  # raise it when tokenising or pooling changes
MAX_TOKENS = 256
MAX_CHARACTERS = 20_000  # far more than 256 tokens of any prose, little enough to tokenise at once
CACHED = 1024  # queries, whose hits are explained with them: 1.5 MiB
RUN_TOKENS = 12  # that take as long as the weights are read
MAX_CACHED_BATCH = 64  # a call with more sentences is a bank or a dataset, encoded once: not cached


class SentenceEncoder:
    """Encodes sentences as unit vectors whose cosine is their similarity in meaning (all-MiniLM-L6-v2).

    A sentence gets the same vector in any batch (to float32 rounding); only its first 256 tokens count. The
    empty sentence has a unit vector, too. A `repeatable` encoder gives a list of sentences the same bits,
    whatever was encoded before: it computes them all together, and caches none.
    """

    dim = DIM

    def __init__(
        self,
        store: WeightStore | None = None,
        network: Path | None = None,
        trained: str = "",
        repeatable: bool = False,
    ) -> None:
        """`network` is a fine-tuned network to use instead; `trained` identifies it in the fingerprint."""
        store = store or WeightStore()
        facts = (
            "minilm",
            str(VERSION),
            str(MAX_TOKENS),
            store.source_hash(WEIGHTS),
            *filter(None, [trained]),
        )
        self.fingerprint = hashlib.sha256("\x1f".join(facts).encode()).hexdigest()[:16]
        self._file = network or store.file(WEIGHTS, "network.onnx")
        self._tokenizer_file = store.file(WEIGHTS, "tokenizer.json")
        self._repeatable = repeatable
        self._lock = threading.Lock()
        self._loaded: Network | None = None
        self._cache = LRUCache[str, Float32](CACHED)

    def encode(self, sentences: Sequence[str], batch: int = 64) -> Float32:
        """`[n, 384]`, one unit row per sentence, in order."""
        if isinstance(sentences, str):
            raise TypeError("encode takes a list of sentences; put the sentence into a list")
        if self._repeatable or len(sentences) > MAX_CACHED_BATCH:
            return self._encode(sentences, batch)
        return self._encode_cached(sentences, batch)

    def _network(self) -> Network:
        """The network, loaded when there is more than a query to encode; two encoders load at once."""
        with self._lock:
            if self._loaded is None:
                self._loaded = Network(self._file)
            return self._loaded

    def _encode_cached(self, sentences: Sequence[str], batch: int) -> Float32:
        """Encode with an LRU cache: queries repeat while a person types and pages."""
        known = {sentence: self._cache.get(sentence) for sentence in sentences}
        new = [sentence for sentence, vector in known.items() if vector is None]
        known |= dict(zip(new, self._encode(new, batch), strict=True))
        rows = np.zeros((len(sentences), DIM), np.float32)
        for row, sentence in enumerate(sentences):
            rows[row] = known[sentence]
        for sentence in new:
            self._cache.put(sentence, rows[sentences.index(sentence)].copy())
        return rows

    @property
    def device(self) -> str:
        """Where the network runs, for people."""
        return str(self._network())

    def pieces(self, sentences: Sequence[str], most: int) -> list[list[int]]:
        """The word-piece ids of each sentence, at most `most` with the start and end tokens."""
        encodings = self._tokenizer.encode_batch([_clean(sentence) for sentence in sentences])
        found = [encoding.ids for encoding in encodings]
        return [ids if len(ids) <= most else [*ids[: most - 1], ids[-1]] for ids in found]

    @cached_property
    def _tokenizer(self) -> Any:
        return _tokenizer(self._tokenizer_file)

    def _encode(self, sentences: Sequence[str], batch: int) -> Float32:
        rows = np.zeros((len(sentences), DIM), np.float32)
        tokens = self.pieces(sentences, MAX_TOKENS)
        order = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
        for start, end in runs([len(tokens[number]) for number in order], batch):
            chosen = order[start:end]
            ids = np.zeros((len(chosen), len(tokens[chosen[-1]])), np.int64)
            mask = np.zeros_like(ids)
            for row, number in enumerate(chosen):
                ids[row, : len(tokens[number])] = tokens[number]
                mask[row, : len(tokens[number])] = 1
            rows[chosen] = self._network()(input_ids=ids, attention_mask=mask)["sentences"]
        return rows


@cache
def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()  # a setting of the tokenizer would be shared by all threads
    tokenizer.no_padding()
    return tokenizer


def runs(lengths: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Sentences of these rising lengths, at most `most` at once, in spans that share one run of the network.

    A run pads its sentences to the longest. Where that would cost more than another run, another begins.

    >>> runs([4, 5, 6, 30, 31], most=64), runs([9, 9, 9], most=2)
    ([(0, 3), (3, 5)], [(0, 2), (2, 3)])
    """
    spans, start = [], 0
    for at in range(1, len(lengths) + 1):
        ends = at == len(lengths) or at - start == most
        if ends or (at - start) * (lengths[at] - lengths[at - 1]) > RUN_TOKENS:
            spans.append((start, at))
            start = at
    return spans


_shared: WeakValueDictionary[Path, SentenceEncoder] = WeakValueDictionary()
_sharing = Lock()


def shared_encoder(store: WeightStore) -> SentenceEncoder:
    """The encoder of a store, one for all experts that use it at the same time.

    It is repeatable, so that a track is the same to the bit whichever worker made it: the padding of another
    batch and the arithmetic of the first queries would each change the last bits.
    """
    with _sharing:
        encoder = _shared.get(store.root)
        if encoder is None:
            encoder = _shared[store.root] = SentenceEncoder(store, repeatable=True)
        return encoder


def _clean(sentence: str) -> str:
    # Lone surrogates (file names that are not UTF-8) cannot cross into the tokenizer.
    return sentence[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
