"""From what a person names (folders, files, splits) to the pairs a recipe trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordreel.datasets import addresses, registry, rules
from wordreel.datasets.trees import open_tree
from wordreel.datasets.trees.teachtext import TeachTextTree
from wordreel.datasets.types import Split
from wordreel.errors import TrainingError
from wordreel.training import teachers as teaching
from wordreel.training.data import Pairs, from_library, from_tree, join
from wordreel.training.recipe import Recipe


@dataclass(frozen=True)
class Source:
    """One library with captions of its videos.

    `captions` is anything that `wordreel.datasets.registry.read` takes: a file (`captions.json`, `.csv`,
    FILE.json:key), a folder with `captions.json`, or a dataset's name with `folder`; without, the captions
    are those that were imported into the library. `ids` (a file of ids, or FILE.json:key.key) keeps some.
    """

    library: Path
    captions: str | None = None
    split: str | None = None
    ids: str | None = None
    folder: Path | None = None
    share: float = 1.0

    def read(self, recipe: Recipe, validating: bool = False) -> Pairs:
        """The pairs, with the captions that the recipe's rule leaves."""
        experts = recipe.model.names
        if self.captions is None:
            found = from_library(self.library, None, experts, split=self.split, share=self.share)
        else:
            found = from_library(self.library, self._told(recipe), experts, share=self.share)
        return found if validating else found.limited(recipe.data.limit)

    def _told(self, recipe: Recipe) -> Split:
        told = registry.read(str(self.captions), self.split, self.folder)
        if self.ids:
            kept = set(addresses.read_ids(self.ids))
            told = replace(told, items=tuple(item for item in told.items if item.id in kept))
        return rules.apply(told, recipe.data.rule)


def open_sources(recipe: Recipe, sources: Sequence[Source], validating: bool = False) -> Pairs | None:
    """Several libraries as one set of pairs; None where there are none."""
    return join([source.read(recipe, validating) for source in sources]) if sources else None


@dataclass(frozen=True)
class Opened:
    train: Pairs
    val: Pairs | None
    teachers: teaching.Teachers | None = None


def open_published(
    recipe: Recipe, folder: Path, kind: str | None = None, splits: tuple[str, str] | None = None
) -> Opened:
    """A published tree of features, with the splits, word features and teachers that the recipe names."""
    tree = open_tree(folder, kind)
    data = recipe.data
    train_name, val_name = splits or (data.train, data.val)
    words = data.words if recipe.model.text.words == "vectors" else ""
    experts = recipe.model.names
    train = from_tree(tree, train_name, experts, words=words, rule=data.rule, limit=data.limit)
    val = None
    if val_name:
        val = from_tree(tree, val_name, experts, words=words, rule=data.rule, limit=data.val_limit)
    return Opened(*taught(recipe, train, tree if isinstance(tree, TeachTextTree) else None, val))


def taught(
    recipe: Recipe, train: Pairs, tree: TeachTextTree | None = None, val: Pairs | None = None
) -> tuple[Pairs, Pairs | None, teaching.Teachers | None]:
    """The pairs without noisy captions, and the teachers over what is left."""
    names, noise = recipe.teach.teachers, recipe.teach.denoise
    if not names and not noise:
        return train, val, None

    def call(pairs: Pairs) -> teaching.Teachers | None:
        if not names:
            return None
        if tree is not None and all(name in tree.teachers for name in names):
            return teaching.from_tree(names, tree, pairs)
        known = tree.teachers if tree is not None else ()
        unknown = [name for name in names if name not in known and not Path(name).expanduser().is_dir()]
        if unknown:
            have = ", ".join(known)
            raise TrainingError(
                f"there is no teacher {unknown[0]!r}: teach.teachers names model folders"
                + (f", or teachers of the tree ({have})" if have else "")
            )
        return teaching.from_models([Path(name) for name in names], pairs)

    teachers = call(train)
    if noise.startswith("rank:"):
        if teachers is None or not noise[5:].isdecimal():
            raise TrainingError("teach.denoise=rank:N needs teachers and a number")
        kept = teaching.denoised(teachers, train, int(noise[5:]))
    elif noise:
        if tree is None:
            raise TrainingError(
                f"teach.denoise={noise} is a file of a TeachText tree; set teach.denoise= or rank:100"
            )
        kept = teaching.masked_by_tree(tree, noise, train)
    else:
        return train, val, teachers
    return train.keeping(kept), val, None if teachers is None else teachers.keeping(kept)
