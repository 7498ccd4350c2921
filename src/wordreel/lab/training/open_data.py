"""Open libraries, folders of videos, published trees and packed files as the data that a recipe trains on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets import json_captions, registry, split_builder
from wordreel.lab.datasets.trees import open_tree
from wordreel.lab.datasets.trees.teachtext import TeachTextTree
from wordreel.lab.datasets.types import Split
from wordreel.lab.models.checkpoint import read_facts
from wordreel.lab.models.clip.config import VideoTextConfig
from wordreel.lab.models.config import from_json
from wordreel.lab.training import teachers as teaching
from wordreel.lab.training.data import Pairs, from_library, from_tree, join
from wordreel.lab.training.data.video_files import files_of_folder, files_of_library, pair_files
from wordreel.lab.training.recipe import Recipe
from wordreel.models.model_store import find_checkpoint

ReadPairs = Callable[[Sequence[str], str], Pairs]
"""Reads the training pairs again with other experts and other word features ("" for captions as text)."""


@dataclass(frozen=True)
class TrainingPairs:
    """The pairs to train and validate on, and the teachers over the captions of `train`."""

    train: Pairs
    val: Pairs | None
    teachers: teaching.Teachers | None = None


@dataclass(frozen=True)
class CaptionedVideos:
    """The videos of a library, or files, with captions.

    `captions` is anything that `wordreel.lab.datasets.registry.read` takes: a file (`captions.json`, `.csv`,
    FILE.json:key), a folder with `captions.json`, or a dataset's name with `annotations`, the folder of its
    annotation files; without, the captions are those that were imported into the library. `ids` (a file of
    ids, or FILE.json:key.key) selects some. Models that read frames take files: those of the folder
    `videos`, named by id at any depth, of the library, or else those that the captions name.
    """

    library: Path | None = None
    captions: str | None = None
    split: str | None = None
    ids: str | None = None
    annotations: Path | None = None
    videos: Path | None = None
    share: float = 1.0

    def read(self, recipe: Recipe, experts: Sequence[str] | None = None) -> Pairs:
        """Return the pairs, with the captions that the recipe selects and its experts by default."""
        captions = None if self.captions is None else self._read_captions(self.captions, recipe)
        if isinstance(recipe.model, VideoTextConfig):
            if captions is None:
                raise TrainingError("a model that reads frames needs captions: --captions FILE")
            if self.videos is not None:
                return pair_files(captions, files_of_folder(self.videos), self.share)
            files = files_of_library(self.library) if self.library is not None else None
            return pair_files(captions, files, self.share)
        if self.library is None:
            raise TrainingError(f"the recipe {recipe.name} trains on features: use `train library`")
        experts = experts or recipe.model.names
        split = self.split if captions is None else None
        return from_library(self.library, captions, experts, split=split, share=self.share)

    def _read_captions(self, captions: str, recipe: Recipe) -> Split:
        split = registry.read(captions, self.split, self.annotations)
        if self.ids:
            wanted = set(json_captions.read_ids(self.ids))
            split = replace(split, items=tuple(item for item in split.items if item.id in wanted))
        return split_builder.apply_rule(split, recipe.data.rule)


@dataclass(frozen=True)
class Sources:
    """Several libraries or folders as one set of pairs."""

    train: Sequence[CaptionedVideos]
    val: Sequence[CaptionedVideos] = ()

    def open(self, recipe: Recipe, device: torch.device | None = None) -> TrainingPairs:
        """Return the pairs for a recipe, with its teachers, which run on the device if they are models."""

        def read(experts: Sequence[str], words: str) -> Pairs:
            return join([source.read(recipe, experts) for source in self.train]).limited(recipe.data.limit)

        val = join([source.read(recipe) for source in self.val]) if self.val else None
        return add_teachers(recipe, read((), ""), val, read=read, device=device)


@dataclass(frozen=True)
class PublishedTree:
    """A published tree of features; splits are the recipe's unless they are named."""

    folder: Path
    kind: str | None = None
    split: str | None = None
    val_split: str | None = None

    def open(self, recipe: Recipe, device: torch.device | None = None) -> TrainingPairs:
        """Return the pairs for a recipe, with its teachers, which run on the device if they are models."""
        model, data = recipe.model, recipe.data
        if isinstance(model, VideoTextConfig):
            raise TrainingError(f"the recipe {recipe.name} trains on frames: use `train videos`")
        tree = open_tree(self.folder, self.kind)
        train_split, val_split = self.split or data.train, self.val_split or data.val
        words = data.words if model.text.words == "vectors" else ""

        def read(experts: Sequence[str], words: str) -> Pairs:
            return from_tree(tree, train_split, experts, words=words, rule=data.rule, limit=data.limit)

        val = None
        if val_split:
            val = from_tree(tree, val_split, model.names, words=words, rule=data.rule, limit=data.val_limit)
        published = tree if isinstance(tree, TeachTextTree) else None
        train = read(model.names, words)
        return add_teachers(recipe, train, val, tree=published, read=read, device=device)


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
    published = tuple(tree.teachers) if tree is not None else ()
    each: list[teaching.Teacher] = []
    for name in recipe.teach.teachers:
        folder = Path(name).expanduser()
        if tree is not None and name in published:
            each.append(teaching.from_tree(name, tree, train))
        elif folder.is_dir():
            each.append(teaching.from_model(folder, _read_as_teacher(folder, train, read), device))
        else:
            others = f", or one of the tree's: {', '.join(published)}" if published else ""
            raise TrainingError(
                f"there is no teacher {name!r}",
                NextStep(f"name a model folder{others}", command="train features … --teacher DIR"),
            )
    teachers = teaching.Teachers(tuple(each)) if each else None
    noise = recipe.teach.denoise
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
            NextStep("denoise by the teachers' ranks", command="train library … --denoise rank:100"),
        )
    return TrainingPairs(
        train.select_captions(selected), val, None if teachers is None else teachers.select_captions(selected)
    )


def _read_as_teacher(folder: Path, train: Pairs, read: ReadPairs | None) -> Pairs:
    """Return the same videos and captions with the experts and word features that a teacher takes."""
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
