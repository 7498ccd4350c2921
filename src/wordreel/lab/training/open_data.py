"""Open libraries and published trees as the pairs that a recipe trains on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets import caption_rules, json_captions, registry
from wordreel.lab.datasets.trees import open_tree
from wordreel.lab.datasets.trees.teachtext import TeachTextTree
from wordreel.lab.datasets.types import Split
from wordreel.lab.models.checkpoint import read_facts
from wordreel.lab.models.config import from_json
from wordreel.lab.training import teachers as teaching
from wordreel.lab.training.data import Pairs, from_library, from_tree, join
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.training_data import TrainingData
from wordreel.models.model_store import find_checkpoint


@dataclass(frozen=True)
class LibrarySource:
    """One library with captions of its videos.

    `captions` is anything that `wordreel.lab.datasets.registry.read` takes: a file (`captions.json`, `.csv`,
    FILE.json:key), a folder with `captions.json`, or a dataset's name with `folder`; without, the captions
    are those that were imported into the library. `ids` (a file of ids, or FILE.json:key.key) selects some.
    """

    library: Path
    captions: str | None = None
    split: str | None = None
    ids: str | None = None
    folder: Path | None = None
    share: float = 1.0

    def read(self, recipe: Recipe, validating: bool = False, experts: Sequence[str] | None = None) -> Pairs:
        """The pairs, with the captions that the recipe's rule selects and the recipe's experts by default."""
        experts = experts or recipe.model.names
        if self.captions is None:
            pairs = from_library(self.library, None, experts, split=self.split, share=self.share)
        else:
            pairs = from_library(self.library, self._read_captions(recipe), experts, share=self.share)
        pairs = pairs.unique() if recipe.data.unique_captions else pairs
        if validating:
            return pairs
        return pairs.limited(recipe.data.limit)

    def _read_captions(self, recipe: Recipe) -> Split:
        split = registry.read(str(self.captions), self.split, self.folder)
        if self.ids:
            wanted = set(json_captions.read_ids(self.ids))
            split = replace(split, items=tuple(item for item in split.items if item.id in wanted))
        return caption_rules.apply_rule(split, recipe.data.rule)


ReadPairs = Callable[[Sequence[str], str], Pairs]
"""Reads the training pairs again with other experts and other word features ("" for captions as text)."""


@dataclass(frozen=True)
class TrainingPairs:
    """The pairs to train and validate on, and the teachers over the captions of `train`."""

    train: Pairs
    val: Pairs | None
    teachers: teaching.Teachers | None = None


def open_libraries(
    recipe: Recipe,
    sources: Sequence[LibrarySource],
    val_sources: Sequence[LibrarySource] = (),
    device: torch.device | None = None,
) -> TrainingPairs:
    """Several libraries as one set of pairs, with the teachers that the recipe names."""

    def read(experts: Sequence[str], words: str) -> Pairs:
        return join([source.read(recipe, experts=experts) for source in sources])

    val = join([source.read(recipe, validating=True) for source in val_sources]) if val_sources else None
    return add_teachers(recipe, read(recipe.model.names, ""), val, read=read, device=device)


def open_published(
    recipe: Recipe,
    folder: Path,
    kind: str | None = None,
    splits: tuple[str, str] | None = None,
    device: torch.device | None = None,
) -> TrainingPairs:
    """A published tree of features, with the splits, word features and teachers that the recipe names."""
    tree = open_tree(folder, kind)
    data = recipe.data
    train_name, val_name = splits or (data.train, data.val)
    words = data.words if recipe.model.text.words == "vectors" else ""
    experts = recipe.model.names

    def read(experts: Sequence[str], words: str) -> Pairs:
        pairs = from_tree(tree, train_name, experts, words=words, rule=data.rule, limit=data.limit)
        return pairs.unique() if data.unique_captions else pairs

    val = None
    if val_name:
        val = from_tree(tree, val_name, experts, words=words, rule=data.rule, limit=data.val_limit)
    published = tree if isinstance(tree, TeachTextTree) else None
    return add_teachers(recipe, read(experts, words), val, tree=published, read=read, device=device)


def add_teachers(
    recipe: Recipe,
    train: Pairs,
    val: Pairs | None = None,
    *,
    tree: TeachTextTree | None = None,
    read: ReadPairs | None = None,
    device: torch.device | None = None,
) -> TrainingPairs:
    """Add the recipe's teachers to training pairs, without the captions that `teach.denoise` leaves out.

    Args:
        recipe: `recipe.teach` names the teachers and the denoising.
        train: The pairs to train on.
        val: The pairs to validate on; they stay as they are.
        tree: The TeachText tree that published teachers and masks come from.
        read: Reads the training pairs as another model reads them; without, every teacher reads `train`.
        device: Where teachers that are models run.

    Raises:
        TrainingError: A teacher or a mask does not exist, or does not know these videos and captions.
    """
    noise = recipe.teach.denoise
    known = tuple(tree.teachers) if tree is not None else ()
    each: list[teaching.Teacher] = []
    for name in recipe.teach.teachers:
        folder = Path(name).expanduser()
        if tree is not None and name in known:
            each += teaching.from_tree([name], tree, train).each
        elif folder.is_dir():
            pairs = _read_as_teacher(folder, train, read)
            each += teaching.from_models([folder], pairs, device).each
        else:
            raise _no_teacher(name, known)
    teachers = teaching.Teachers(tuple(each)) if each else None
    if not noise:
        return TrainingPairs(train, val, teachers)
    if noise.startswith("rank:"):
        if teachers is None or not noise[5:].isdecimal():
            raise TrainingError("teach.denoise=rank:N needs teachers and a number")
        selected = teaching.denoised(teachers, train, int(noise[5:]))
    elif tree is not None:
        selected = teaching.masked_by_tree(tree, noise, train)
    else:
        raise TrainingError(
            f"the caption mask {noise} is a file of a TeachText tree, and there is no such tree",
            NextStep("denoise by the teachers' ranks, or not at all", command="train … --denoise rank:100"),
        )
    return TrainingPairs(
        train.select_captions(selected), val, None if teachers is None else teachers.select_captions(selected)
    )


def _read_as_teacher(folder: Path, train: Pairs, read: ReadPairs | None) -> Pairs:
    """The same videos and captions with the experts and word features that a teacher takes."""
    if read is None:
        return train
    facts = read_facts(find_checkpoint(folder))
    config = from_json(facts["config"])
    trained_on = facts.get("training", {}).get("recipe", {}).get("data", {})
    words = trained_on.get("words", "") if config.text.words == "vectors" else ""
    pairs = read(config.names, words).take(train.ids)
    if pairs.counts.tolist() != train.counts.tolist():
        raise TrainingError(f"the teacher {folder} reads other captions of {train.name} than the student")
    return pairs


def with_teachers(recipe: Recipe, data: TrainingData) -> TrainingData:
    """Packed data with the teachers that the recipe names: model folders that read captions as it does."""
    if recipe.teach.denoise:
        raise TrainingError("teach.denoise chooses captions before they are packed: pack with it")
    if not recipe.teach.teachers:
        return data
    if not isinstance(data.train_words, Packed):
        raise TrainingError("teachers read whole captions, and data.segment_words draws parts of them")
    if unknown := [name for name in recipe.teach.teachers if not Path(name).expanduser().is_dir()]:
        raise _no_teacher(unknown[0])
    words = (recipe.model.text, data.train_words)
    return replace(data, teachers=teaching.from_models(recipe.teach.teachers, data.train, encoded=words))


def _no_teacher(name: str, known: Sequence[str] = ()) -> TrainingError:
    published = f", or one of the tree's: {', '.join(known)}" if known else ""
    return TrainingError(
        f"there is no teacher {name!r}",
        NextStep(f"name a model folder{published}", command="train … --teacher DIR"),
    )
