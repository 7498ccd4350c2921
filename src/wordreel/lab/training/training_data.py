"""Training data, prepared once for any number of runs: videos, captions and their tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wordreel.errors import TrainingError, WeightsMissing
from wordreel.lab.models.config import MINILM, TextConfig
from wordreel.lab.models.text.tokenizers import open_tokenizer
from wordreel.lab.training.data.caption_cache import load_or_encode
from wordreel.lab.training.data.caption_store import encode, is_frozen
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.data.transcripts import Transcripts, tokenize_transcripts
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.start import text_folder
from wordreel.lab.training.teachers import Teachers
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32

SENTENCES = TextConfig("bert", MINILM.hidden, "sentence", network=MINILM, max_tokens=32)


@dataclass(frozen=True)
class TrainingData:
    """What `train` trains on. `teachers` are over the captions of `train`, in order.

    `sentence_tokens` are the training captions in the sentence encoder's tokens, which soft targets need.
    """

    train: Pairs
    train_words: Packed | Transcripts
    val: Pairs | None = None
    val_words: Packed | None = None
    teachers: Teachers | None = None
    tokenizer: Path | None = None  # the folder with the captions' tokenizer
    sentence_tokens: Packed | None = None
    text_weights: Mapping[str, Float32] | None = (
        None  # the sentence encoder's, where no weight store has them
    )

    def __post_init__(self) -> None:
        for pairs in (self.train, self.val):
            if pairs is not None:
                check_features(pairs)
        for words in (self.train_words, self.val_words):
            if isinstance(words, Packed) and not all_finite(words.values):
                raise TrainingError("some word features are not finite numbers; compute them again")


def check_features(pairs: Pairs) -> None:
    """A number that is none would spread to every weight, and the loss need not show it."""
    for expert, packed in pairs.rows.items():
        if all_finite(packed.values):
            continue
        broken = [n for n in range(len(packed)) if not all_finite(packed.item(n))]
        raise TrainingError(
            f"{pairs.name}: {expert} of {len(broken)} videos has values that are not finite numbers, the "
            f"first of {pairs.ids[broken[0]]}; extract it again, leave those videos out (--ids), or leave "
            "the expert out (model.experts)"
        )


def check_words(words: Packed, text: TextConfig) -> None:
    """What encodes captions must be of the size that the model's text side is."""
    network = text.network
    if text.words == "vectors" and words.values.shape[1] != text.dim:
        raise TrainingError(
            f"{text.source} gives words of {words.values.shape[1]} numbers, the recipe says {text.dim}; set "
            f"model.text.dim={words.values.shape[1]}"
        )
    if network is None or not len(words.values) or words.values.dtype.kind not in "iu":
        return
    if int(words.values.max()) >= network.vocabulary:
        raise TrainingError(
            f"{text.source} knows more words than the recipe's network; set model.text.network.vocabulary"
        )
    if words.longest > network.positions:
        raise TrainingError(
            f"captions of {words.longest} tokens do not fit the network's {network.positions}; set "
            f"model.text.max_tokens={network.positions}"
        )


def all_finite(values: NDArray[Any], rows: int = 1 << 16) -> bool:
    """Block by block: a whole dataset's answer would be as large as a quarter of the dataset."""
    if values.dtype.kind != "f":
        return True
    starts = range(0, len(values), rows)
    return all(bool(np.isfinite(values[start : start + rows]).all()) for start in starts)


def prepare(
    recipe: Recipe,
    train: Pairs,
    val: Pairs | None = None,
    *,
    teachers: Teachers | None = None,
    folder: Path | None = None,
    store: WeightStore | None = None,
    on_progress: ProgressCallback | None = None,
    device: str | torch.device | None = None,
    cache: Path | None = None,
) -> TrainingData:
    """Limit and encode the captions as the recipe says. `folder` is where a tokenizer's files lie.

    A GPU may do the encoding; `cache` is a folder where the next run finds it.
    """
    text = recipe.model.text
    train = train if teachers is not None else train.limited(recipe.data.limit)
    val = None if val is None else val.limited(recipe.data.val_limit)
    tokenizer_folder = folder or text_folder(text, recipe.start)
    ready = train.words is not None and (val is None or val.words is not None)
    try:
        source = None if ready else open_tokenizer(text, tokenizer_folder, store)
    except WeightsMissing as error:
        if text.source.partition(":")[0] not in ("wordpiece", "tokenizer"):
            raise
        raise TrainingError(
            f"{error}; --set start.text=FOLDER names the folder of the recipe's text network and tokenizer"
        ) from None
    encoding_device = None if device is None else torch.device(device)

    def encoded(pairs: Pairs) -> Packed:
        if cache is None or source is None or pairs.words is not None:
            packed = encode(pairs, text, source, on_progress, encoding_device)
        else:
            packed = load_or_encode(
                cache, pairs, text, source, lambda: encode(pairs, text, source, on_progress, encoding_device)
            )
        check_words(packed, text)
        return packed

    def drawn_from(pairs: Pairs) -> Transcripts:
        if source is None or is_frozen(text):
            raise TrainingError(
                "data.segment_words draws other words in every step, and these captions are encoded once; "
                "set model.text.frozen=false, or data.segment_words=0"
            )
        return tokenize_transcripts(pairs, source, recipe.data.until)

    words = drawn_from(train) if recipe.data.segment_words else encoded(train)
    sentences = None
    if recipe.loss.soft_targets:
        own = isinstance(words, Packed) and text.words == "bert" and text.source == SENTENCES.source
        sentences = words if isinstance(words, Packed) and own else sentence_tokens(train, store)
    return TrainingData(
        train, words, val, None if val is None else encoded(val), teachers, tokenizer_folder, sentences
    )


def sentence_tokens(pairs: Pairs, store: WeightStore | None = None) -> Packed:
    """Every caption in the sentence encoder's tokens."""
    if not all(text.strip() for text in pairs.texts):
        raise TrainingError(
            f"soft targets compare captions as text, and {pairs.name} has word features only; set "
            "loss.soft_targets=0"
        )
    return encode(replace(pairs, words=None), SENTENCES, open_tokenizer(SENTENCES, None, store))
