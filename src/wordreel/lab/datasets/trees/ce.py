"""The feature tree of Collaborative Experts: `data/<DATASET>/structured-symlinks`, one pickle per expert.

    aggregated_{type}_{fps}fps_{px}px_stride{s}[_offset{o}][_inner_stride{i}]/{model}-{agg}[-logits][-tag].pickle
    aggregated_{audio,face,ocr,speech}…/*.pickle        (file names differ from dataset to dataset)
    aggregated_text_feats/*.pkl                         id → one [words, dim] array per caption
    (QuerYD, AudioCaps: text_embeddings/, VATEX: text-embeddings/)
    raw-captions.pkl, *_list*.txt, dict_youtube_mapping.pkl (MSVD: the id of the video → the name "vid12")

Experts have the names of the published configurations: `imagenet.senet154.0`, `audio`, `face`. Other
aggregations and strides of the same network append theirs: `imagenet.senet154.0.max`.

MSR-VTT's 1k-B (the splits `miech-train` and `miech-test`) reads `face`, `audio`, `flow` and `antoine-rgb`
from `antoine/`, where the other splits read `aggregated_…`; see `PickledTree.for_split`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from wordreel.errors import DatasetError
from wordreel.lab.datasets.array_files import read_mapping
from wordreel.lab.datasets.trees.feature_files import PUBLISHED, SUFFIXES, FeatureFile, RowFile
from wordreel.lab.datasets.trees.split_lists import SplitLists, pick_split
from wordreel.lab.datasets.trees.tree import WITHOUT_EXPERT, FileTree
from wordreel.lab.datasets.types import Missing, Split

FOLDER = "structured-symlinks"
MAPPING = "dict_youtube_mapping.pkl"
TEXT_FOLDERS = ("aggregated_text_feats", "text_embeddings", "text-embeddings")
FOLDER_EXPERTS = ("audio", "face", "ocr", "speech")  # their files lie in folders of their name
CANONICAL, EXPECTED, MIECH_FILES, TEXT_NAMES = (
    PUBLISHED["ce"][key] for key in ("canonical", "expected", "miech", "word_features")
)
MIECH = "miech-"  # the splits of 1k-B
MIECH_DATASET = "1k-B"
SILENT = ("audio", "speech")  # MSVD has no sound
VISUAL = re.compile(r"aggregated_(?P<type>.+?)_\d+fps_\d+px_stride.*")
MODEL = re.compile(r"(?P<model>.+?)-(?P<agg>avg|max|raw|ent|fixed_seg)(?P<more>-.+)?")
TEXT_TAIL = re.compile(r"-(?:caption-)?(?:train|val|test|val_?1|val_?2)$|-feats$|-text$")


@dataclass
class PickledTree(FileTree):
    """A folder of pickled features. TeachText's tree extends it with teachers and caption masks."""

    kind: ClassVar[str] = "ce"
    expected: ClassVar[Sequence[str]] = tuple(EXPECTED)

    miech: bool = False  # whether the features are those of 1k-B

    @cached_property
    def files(self) -> dict[str, Path]:
        """Expert → file, sorted by expert."""
        files = _experts(self.root)
        if self.miech:
            files = {expert: path for expert, path in files.items() if path.parent.name != "antoine"}
            for expert, name in MIECH_FILES.items():
                files.pop(expert, None)
                if (self.root / name).is_file():
                    files[expert] = self.root / name
        return dict(sorted(files.items()))

    @property
    def experts(self) -> Sequence[str]:
        """The experts by the names of the published configurations."""
        return tuple(self.files)

    @property
    def missing(self) -> Sequence[Missing]:
        """Experts and lists that the published downloads have."""
        locations = {**EXPECTED, **(MIECH_FILES if self.miech else {})}
        silent = SILENT if self.dataset == "MSVD" else ()
        missing = [
            Missing(f"features of {expert}", self.root / locations[expert], WITHOUT_EXPERT)
            for expert in self.expected
            if expert not in self.files and expert not in silent
        ]
        return (*missing, *self.lists.missing)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Item → the id that some files use for it (MSVD); empty for other datasets."""
        path = self.root / MAPPING
        return {item: str(name) for item, name in read_mapping(path).items()} if path.is_file() else {}

    @cached_property
    def lists(self) -> SplitLists:
        """The split lists with their captions."""
        return SplitLists(self.root, self.dataset, aliases=self.aliases)

    def open_files(self, expert: str) -> list[FeatureFile | RowFile]:
        """Return the one file of an expert."""
        return [FeatureFile(self.files[expert], self.aliases)] if expert in self.files else []

    @property
    def splits(self) -> Sequence[str]:
        """The names of the split lists."""
        return self.lists.names

    def split(self, name: str) -> Split:
        """Return one split with its captions."""
        return self.lists.split(name)

    def for_split(self, split: str) -> Self:
        """Return the tree with the features that the released code reads for a split.

        1k-B's are a dataset of their own, `MSRVTT-1k-B`: its faces have another length than those of the
        other splits, and the same video cannot have both under one name.
        """
        is_miech = pick_split(split, self.splits).startswith(MIECH)
        return self._miech_tree if is_miech and not self.miech else self

    @cached_property
    def _miech_tree(self) -> Self:
        return replace(self, dataset=f"{self.dataset}-{MIECH_DATASET}", miech=True, _opened={})

    def caption_index(self, split: str) -> dict[str, int]:
        """Return item → the index of its one caption that counts in this split."""
        return self.lists.caption_index(split)

    @cached_property
    def text_files(self) -> dict[str, list[Path]]:
        """Word features → their files (MSVD and ActivityNet have one per split)."""
        files: dict[str, list[Path]] = {}
        for folder in TEXT_FOLDERS:
            for path in sorted((self.root / folder).glob("*")):
                if path.suffix in SUFFIXES:
                    stem = TEXT_NAMES.get(path.stem, TEXT_TAIL.sub("", path.stem))
                    files.setdefault(stem, []).append(path)
        return files

    @property
    def word_feature_names(self) -> Sequence[str]:
        """The names of the word features."""
        return tuple(self.text_files)

    def open_word_files(self, name: str) -> list[FeatureFile | RowFile]:
        """Return the files of all splits."""
        return [FeatureFile(path, self.aliases) for path in self.text_files[name]]


def open_ce(folder: Path, dataset: str | None = None) -> PickledTree:
    """Open the tree at a dataset's folder, or at its `structured-symlinks`."""
    root = folder / FOLDER if is_pickled_tree(folder / FOLDER) else folder
    if not is_pickled_tree(root):
        raise DatasetError(
            f"{folder} is not a Collaborative Experts tree: it has no {FOLDER}/aggregated_… folders"
        )
    return PickledTree(root, dataset or dataset_from_path(root))


def is_pickled_tree(root: Path) -> bool:
    """Return whether a folder holds CE's `aggregated_…` folders."""
    return any(path.is_dir() for path in root.glob("aggregated_*"))


def dataset_from_path(root: Path) -> str:
    """Return the dataset's name: that of the last folder which is not part of a layout."""
    inner = (FOLDER, "high-quality", "symlinked-feats", "vid_feat_files", "mult_h5", "data")
    names = [name for name in root.resolve().parts if name not in inner and name != "/"]
    return names[-1] if names else "dataset"


def _experts(root: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    others: list[tuple[str, Path]] = []
    for path in sorted([*root.glob("aggregated_*/*"), *root.glob("antoine/*")]):
        if path.suffix not in SUFFIXES or path.parent.name in TEXT_FOLDERS:
            continue
        folder = path.parent.name.removeprefix("aggregated_")
        expert = next((name for name in FOLDER_EXPERTS if folder.startswith(name)), None)
        name = CANONICAL.get(path.name) or _visual_expert(path) or f"{folder}.{path.stem}"
        if expert and name not in FOLDER_EXPERTS:
            others.append((expert, path))
        elif name in files:
            files[f"{name}@{path.parent.name}"] = path
        else:
            files[name] = path
    for name, path in others:  # files under other names: the expert itself if it has no canonical file
        files[f"{name}.{path.stem}" if name in files else name] = path
    return files


def _visual_expert(path: Path) -> str | None:
    folder, file = VISUAL.fullmatch(path.parent.name), MODEL.fullmatch(path.stem)
    if folder is None or file is None:
        return None
    kind = "face" if folder["type"] == "facefeats" else folder["type"]
    name = "face" if kind == "face" else f"{kind}.{file['model']}.0"
    return name + ("" if file["agg"] == "avg" else f".{file['agg']}") + (file["more"] or "").replace("-", ".")
