"""Training data, prepared once for any number of runs: videos, captions and their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import TrainingError, WeightsMissing
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.config import TextConfig
from wordreel.lab.models.text.tokenizers import open_tokenizer
from wordreel.lab.training.data.caption_store import encode, is_frozen
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.data.transcripts import Transcripts, split_transcripts
from wordreel.lab.training.init_weights import text_folder
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.settings import StartSettings
from wordreel.lab.training.teachers import Teachers
from wordreel.models.model_store import find_checkpoint
from wordreel.progress import ProgressCallback
from wordreel.runtime.store import WeightStore

BLOCK = 4096  # captions


@dataclass(frozen=True)
class TrainingData:
    """What `train` trains on. `teachers` are over the captions of `train`, in order.

    `tokenizer` is the folder with the captions' tokenizer, or its file for a model that reads frames.
    """

    train: Pairs
    train_words: Packed | Transcripts
    val: Pairs | None = None
    val_words: Packed | None = None
    teachers: Teachers | None = None
    tokenizer: Path | None = None

    def __post_init__(self) -> None:
        for pairs in (self.train, self.val):
            if pairs is not None:
                check_features(pairs)
        for words in (self.train_words, self.val_words):
            if isinstance(words, Packed) and not all_finite(words.values):
                raise TrainingError("some word features are not finite numbers; compute them again")


def prepare(
    recipe: Recipe,
    train: Pairs,
    val: Pairs | None = None,
    *,
    teachers: Teachers | None = None,
    folder: Path | None = None,
    store: WeightStore | None = None,
    on_progress: ProgressCallback | None = None,
    cache: Path | None = None,
) -> TrainingData:
    """Limit and encode the captions as the recipe says.

    Args:
        recipe: The recipe.
        train: The pairs to train on.
        val: The pairs to choose the best epoch on.
        teachers: Teachers of the training pairs, whose captions are limited already.
        folder: Where a tokenizer's files lie; its file for a model that reads frames.
        store: Where MiniLM and CLIP's vocabulary lie.
        on_progress: Called while captions are encoded.
        cache: A folder where the next run finds the encoded captions.
    """
    train = train if teachers is not None else train.limited(recipe.data.limit)
    val = None if val is None else val.limited(recipe.data.val_limit)
    if isinstance(recipe.model, VideoTextConfig):
        file = folder or clip_tokenizer(recipe.start, store)
        val_words = None if val is None else clip_tokens(val.texts, recipe.model, file)
        words = clip_tokens(train.texts, recipe.model, file)
        return TrainingData(train, words, val, val_words, tokenizer=file)
    text = recipe.model.text
    folder = folder or text_folder(text, recipe.start)
    ready = train.words is not None and (val is None or val.words is not None)
    try:
        source = None if ready else open_tokenizer(text, folder, store)
    except WeightsMissing as error:
        if text.source.partition(":")[0] not in ("wordpiece", "tokenizer"):
            raise
        raise TrainingError(
            f"{error}; --set start.text=FOLDER names the folder of the recipe's text network and tokenizer"
        ) from None

    def encoded(pairs: Pairs) -> Packed:
        packed = encode(pairs, text, source, on_progress, cache)
        check_words(packed, text)
        return packed

    val_words = None if val is None else encoded(val)
    if not recipe.data.segment_words:
        return TrainingData(train, encoded(train), val, val_words, teachers, folder)
    if source is None or is_frozen(text) or text.words == "vectors":
        raise TrainingError(
            "data.segment_words draws other words in every step, and these captions are encoded once; set "
            "model.text.words=bert and model.text.frozen=false, or data.segment_words=0"
        )
    transcripts = split_transcripts(train, source, recipe.data.until)
    return TrainingData(train, transcripts, val, val_words, teachers, folder)


def clip_tokenizer(start: StartSettings, store: WeightStore | None = None) -> Path:
    """Return the tokenizer's file of the model or CLIP that training starts from; else CLIP's own."""
    from wordreel.backbones.tokenizer import CLIP_VOCABULARY, TOKENIZER

    folders = [find_checkpoint(Path(start.model).expanduser())] if start.model else []
    if start.backbone:
        folders.append(Path(start.backbone).expanduser())
    files = (folder / TOKENIZER for folder in folders)
    found = next((file for file in files if file.is_file()), None)
    return found or (store or WeightStore()).file(CLIP_VOCABULARY)


def clip_tokens(texts: list[str], model: VideoTextConfig, tokenizer: Path) -> Packed:
    """Return the token ids of captions for a model that reads frames."""
    from wordreel.backbones.config import TextSettings
    from wordreel.backbones.tokenizer import TextTokenizer

    opened = TextTokenizer(tokenizer.read_text(encoding="utf-8"), TextSettings(model.max_words))
    known = model.backbone.text.vocabulary
    if opened.vocabulary > known:
        raise TrainingError(f"the tokenizer has {opened.vocabulary} tokens, the text tower only {known}")
    rows: list[NDArray[Any]] = []
    for start in range(0, len(texts), BLOCK):
        ids, mask = opened.encode(texts[start : start + BLOCK])
        rows += [row[real] for row, real in zip(ids, mask, strict=True)]
    return pack(rows)


def check_features(pairs: Pairs) -> None:
    """Raise if a feature is no number: it would spread to every weight, and the loss need not show it."""
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
    """Raise unless what encodes captions is of the size that the model's text side is."""
    network = text.network
    if text.words == "vectors" and (dim := words.values.shape[1]) != text.dim:
        raise TrainingError(
            f"{text.source} gives words of {dim} numbers, not {text.dim}; set model.text.dim={dim}"
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
    """Return whether all numbers are finite, block by block: a mask of a whole dataset would be large."""
    if values.dtype.kind != "f":
        return True
    starts = range(0, len(values), rows)
    return all(bool(np.isfinite(values[start : start + rows]).all()) for start in starts)
