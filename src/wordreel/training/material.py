"""Training data made ready once for any number of runs: pairs and their encoded captions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from wordreel.errors import TrainingError
from wordreel.models.text.sources import open_source
from wordreel.training.data.keep import kept
from wordreel.training.data.packed import Packed
from wordreel.training.data.pairs import Pairs
from wordreel.training.data.texts import Told, encode, is_frozen
from wordreel.training.data.transcripts import Transcripts, transcripts
from wordreel.training.recipe import Recipe
from wordreel.training.start import text_folder
from wordreel.training.teachers import Teachers
from wordreel.weights.store import Store


@dataclass(frozen=True)
class Material:
    """What `train` trains on. `teachers` are over the captions of `train`, in order."""

    train: Pairs
    train_words: Packed | Transcripts
    val: Pairs | None = None
    val_words: Packed | None = None
    teachers: Teachers | None = None
    tokenizer: Path | None = None  # the folder with the captions' tokenizer


def prepare(
    recipe: Recipe,
    train: Pairs,
    val: Pairs | None = None,
    *,
    teachers: Teachers | None = None,
    folder: Path | None = None,
    store: Store | None = None,
    told: Told | None = None,
    device: str | torch.device | None = None,
    cache: Path | None = None,
) -> Material:
    """Limit and encode the captions as the recipe says. `folder` is where a tokenizer's files lie.

    A GPU may do the encoding; `cache` is a folder that keeps it for the next time.
    """
    text = recipe.model.text
    train = train if teachers is not None else train.limited(recipe.data.limit)
    val = None if val is None else val.limited(recipe.data.val_limit)
    place = folder or text_folder(text, recipe.start)
    ready = train.words is not None and (val is None or val.words is not None)
    source = None if ready else open_source(text, place, store)
    where = None if device is None else torch.device(device)

    def encoded(pairs: Pairs) -> Packed:
        if cache is None or source is None or pairs.words is not None:
            return encode(pairs, text, source, told, where)
        return kept(cache, pairs, text, source, lambda: encode(pairs, text, source, told, where))

    def drawn_from(pairs: Pairs) -> Transcripts:
        if source is None or is_frozen(text):
            raise TrainingError(
                "data.stretch draws other words in every step, and these captions are encoded once; set "
                "model.text.frozen=false, or data.stretch=0"
            )
        return transcripts(pairs, source, recipe.data.until)

    return Material(
        train,
        drawn_from(train) if recipe.data.stretch else encoded(train),
        val,
        None if val is None else encoded(val),
        teachers,
        place,
    )
