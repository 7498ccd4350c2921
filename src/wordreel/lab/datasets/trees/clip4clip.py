"""CLIP4Clip's data folders: captions in CSV, JSON or pickles, and a folder of videos. No features.

    MSRVTT        MSRVTT_train.9k.csv, MSRVTT_train.7k.csv, MSRVTT_JSFUSION_test.csv, MSRVTT_data.json
    MSVD          {train,val,test}_list.txt, raw-captions.pkl
    LSMDC         LSMDC16_annos_training.csv, …_val.csv, LSMDC16_challenge_1000_publictect.csv
    ActivityNet   train_ids.json, val_ids.json, train.json, val_1.json
    DiDeMo        {train,val,test}_list.txt, {train,val,test}_data.json

ActivityNet and DiDeMo are searched by paragraph: an item's sentences are joined to one caption, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import AnnotationFolder
from wordreel.lab.datasets.registry import DATASETS, read_published
from wordreel.lab.datasets.split_builder import apply_rule
from wordreel.lab.datasets.trees.feature_files import PUBLISHED
from wordreel.lab.datasets.trees.split_lists import pick_split
from wordreel.lab.datasets.trees.tree import Tree
from wordreel.lab.datasets.types import Item, Missing, Split

MEDIA = (".mp4", ".avi", ".webm", ".mkv", ".mov", ".m4v", ".mpg", ".mpeg", ".flv", ".wmv", ".3gp")


LAYOUTS: dict[str, Any] = PUBLISHED["clip4clip"]


@dataclass
class CLIP4ClipTree(Tree):
    """Annotations of one dataset, and the videos they are about."""

    kind: ClassVar[str] = "clip4clip"
    experts: ClassVar[Sequence[str]] = ()

    videos: Path  # searched recursively

    @cached_property
    def _annotations(self) -> AnnotationFolder:
        return AnnotationFolder(DATASETS[self._layout["dataset"]], self.root)

    @property
    def _layout(self) -> dict[str, Any]:
        layout: dict[str, Any] = LAYOUTS[self.dataset]
        return layout

    @property
    def missing(self) -> Sequence[Missing]:
        """Annotation files that are not here, and the videos if there are none."""
        keys = dict.fromkeys(key for _, *needed in self._layout["splits"].values() for key in needed)
        missing = [self._annotations.missing(key) for key in keys if not self._annotations.find(key)]
        if not self._media:
            without = "captions of videos that are in the library already"
            missing.append(Missing("video files", self.videos, without))
        return tuple(missing)

    @property
    def splits(self) -> Sequence[str]:
        """The splits whose files are here."""
        return tuple(
            name
            for name, (_, *needed) in self._layout["splits"].items()
            if all(self._annotations.find(key) for key in needed)
        )

    def split(self, name: str) -> Split:
        """Return one split with the paths of its videos."""
        chosen = pick_split(name, self.splits)
        split = read_published(self._layout["dataset"], self._layout["splits"][chosen][0], self.root)
        items = map(self._with_video, apply_rule(split, self._layout.get("rule", "all")).items)
        return Split(self.dataset, chosen, tuple(items), (*split.missing, *self.missing))

    def _with_video(self, item: Item) -> Item:
        """Return the item under CLIP4Clip's name for it, with the path of its video."""
        names = {"ActivityNet": item.id.removeprefix("v_"), "DiDeMo": item.path or item.id}
        name = names.get(self.dataset, item.id)
        return replace(item, id=name, path=self._media.get(name))

    @cached_property
    def _media(self) -> dict[str, str]:
        """File name with and without suffix → path."""
        paths: dict[str, str] = {}
        for path in sorted(self.videos.rglob("*")) if self.videos.is_dir() else ():
            if path.suffix.lower() in MEDIA and path.is_file():
                paths.setdefault(path.stem, str(path))
                paths.setdefault(path.name, str(path))
        return paths


def open_clip4clip(folder: Path, dataset: str | None = None, videos: Path | None = None) -> CLIP4ClipTree:
    """Open the annotations in a folder. Videos are looked for in `videos`, or below the same folder."""
    names = {name.lower(): name for name in LAYOUTS}
    name = names.get(dataset.lower()) if dataset else detect_dataset(folder)
    if name is None:
        raise DatasetError(f"{folder} is not a CLIP4Clip folder: it has no captions of {', '.join(LAYOUTS)}")
    return CLIP4ClipTree(folder, name, videos or folder)


def detect_dataset(folder: Path) -> str | None:
    """Return the dataset whose annotation files are in a folder; lists alone do not tell."""
    for name, layout in LAYOUTS.items():
        files = DATASETS[layout["dataset"]].files
        needed = {key for _, *keys in layout["splits"].values() for key in keys}
        if name in ("DiDeMo", "MSVD"):
            needed = {key for key in needed if key.startswith("captions")}
        if any((folder / file).is_file() for key in needed for file in files[key].names):
            return name
    return None
