"""Captioned videos and pictures as files: what models that read frames train on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets import caption_rules, json_captions, registry
from wordreel.lab.datasets.types import Caption, Split
from wordreel.lab.training.data.pairs import Pairs, join
from wordreel.lab.training.recipe import BaseRecipe


@dataclass(frozen=True)
class VideoPairs:
    """`pairs` are the captions (without features), `paths` the file of each video."""

    pairs: Pairs
    paths: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def fingerprint(self) -> str:
        """Changes with the captions and with the files' sizes."""
        digest = hashlib.sha256(self.pairs.fingerprint.encode())
        for path in self.paths:
            digest.update(f"{path.name}\x1e{path.stat().st_size}\x1d".encode())
        return digest.hexdigest()[:16]

    def limited(self, captions: int) -> VideoPairs:
        """At most so many captions of each video, from the first; 0 keeps all."""
        return replace(self, pairs=self.pairs.limited(captions))


@dataclass(frozen=True)
class VideoSource:
    """Files with captions.

    `captions` is anything that `wordreel.lab.datasets.registry.read` takes, or with `annotations`, the folder
    of a dataset's annotation files, the name of a dataset. `videos` is a folder of files named by id, at any
    depth; without, files are those of the `library`, or those that the captions name.
    """

    captions: str
    videos: Path | None = None
    library: Path | None = None
    annotations: Path | None = None
    split: str | None = None
    ids: str | None = None
    share: float = 1.0

    def read(self, recipe: BaseRecipe) -> VideoPairs:
        """The files that have captions, with those that the recipe's rule selects."""
        split = registry.read(self.captions, self.split, self.annotations)
        if self.ids:
            wanted = set(json_captions.read_ids(self.ids))
            split = replace(split, items=tuple(item for item in split.items if item.id in wanted))
        split = caption_rules.apply_rule(split, recipe.data.rule)
        pairs = pair_files(split, self._files(), self.share)
        if recipe.data.unique_captions:
            pairs = replace(pairs, pairs=pairs.pairs.unique())
        return pairs

    def _files(self) -> Mapping[str, Path] | None:
        if self.videos is not None:
            return files_by_name(self.videos)
        if self.library is None:
            return None
        names: dict[str, Path] = {}
        for file in LibraryStore.open(self.library).files():
            path = Path(file.path)
            names.setdefault(path.name, path)
            names.setdefault(path.stem, path)
        return names


def files_by_name(folder: Path) -> dict[str, Path]:
    """Every file under a folder, by its name with and without suffix; the first in order of path counts."""
    if not folder.is_dir():
        raise TrainingError(f"there is no folder {folder}")
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place) / name
            found.setdefault(name, path)
            found.setdefault(path.stem, path)
    return found


def pair_files(split: Split, files: Mapping[str, Path] | None, share: float = 1.0) -> VideoPairs:
    """The items of a split whose file is there; without `files`, those whose captions name a file."""
    ids: list[str] = []
    paths: list[Path] = []
    captions: list[tuple[Caption, ...]] = []
    for item in split.items:
        spelled = tuple(caption for caption in item.captions if caption.text.strip())
        path = _file(item.id, item.path, files)
        if path is not None and spelled:
            ids.append(item.id)
            paths.append(path)
            captions.append(spelled)
    name = f"{split.dataset} {split.name}"
    if not ids:
        raise TrainingError(
            f"{name}: no captioned video has a file",
            NextStep("name the folder of the videos, whose files are named by id", "train … --videos DIR"),
        )
    missing = len(split.items) - len(ids)
    return VideoPairs(
        Pairs(name, tuple(ids), {}, tuple(captions), shares=(share,), missing=missing), tuple(paths)
    )


def _file(name: str, named: str | None, files: Mapping[str, Path] | None) -> Path | None:
    if files is None:
        path = None if named is None else Path(named)
        return path if path is not None and path.is_file() else None
    return files.get(name) or (files.get(Path(named).name) if named else None)


def join_videos(parts: Sequence[VideoPairs]) -> VideoPairs:
    """Several sources in one."""
    return VideoPairs(join([part.pairs for part in parts]), tuple(path for p in parts for path in p.paths))


@dataclass(frozen=True)
class VideoData:
    """What a model that reads frames trains on. `tokenizer` is the file of its tokenizer.

    Without, it is that of the CLIP or model that training starts from, or OpenAI's.
    """

    train: VideoPairs
    val: VideoPairs | None = None
    tokenizer: Path | None = None


def open_videos(
    recipe: BaseRecipe, sources: Sequence[VideoSource], val_sources: Sequence[VideoSource] = ()
) -> VideoData:
    """The files and captions to train and validate on."""
    train = join_videos([source.read(recipe) for source in sources]).limited(recipe.data.limit)
    val = None
    if val_sources:
        val = join_videos([source.read(recipe) for source in val_sources]).limited(recipe.data.val_limit)
    return VideoData(train, val)
