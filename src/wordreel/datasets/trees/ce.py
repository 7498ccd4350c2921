"""Collaborative Experts' tree: `data/<DATASET>/structured-symlinks`, one pickle per expert.

    aggregated_{type}_{fps}fps_{px}px_stride{s}[_offset{o}][_inner_stride{i}]/{model}-{agg}[-logits][-tag].pickle
    aggregated_{audio,face,ocr,speech}…/*.pickle        (file names differ from dataset to dataset)
    aggregated_text_feats/*.pkl                         id → one [words, dim] array per caption
    (QuerYD: text_embeddings/, VATEX: text-embeddings/)
    raw-captions.pkl, *_list*.txt, dict_youtube_mapping.pkl (MSVD: the id of the video → the name "vid12")

Experts have the names of the published configurations: `imagenet.senet154.0`, `audio`, `face`. Files that
those do not name (other aggregations, other strides) have it behind theirs: `imagenet.senet154.0.max`.

MSR-VTT's 1k-B (the splits `miech-train` and `miech-test`) reads `face`, `audio`, `flow` and `antoine-rgb`
from `antoine/`, where the other splits read `aggregated_…`; see `PickledTree.for_split`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from wordreel.datasets.trees.lists import Lists, pick_split
from wordreel.datasets.trees.tables import SUFFIXES, Table, read_mapping
from wordreel.datasets.trees.values import as_rows, as_track
from wordreel.datasets.types import Missing, Split
from wordreel.errors import DatasetError, WordreelError
from wordreel.types import Absent, Float32, Track

FOLDER = "structured-symlinks"
MAPPING = "dict_youtube_mapping.pkl"
TEXT_FOLDERS = ("aggregated_text_feats", "text_embeddings", "text-embeddings")
PLAIN = ("audio", "face", "ocr", "speech")  # experts whose files lie in folders of their name
CANONICAL = {  # the file the published code reads, where a folder has several or lies elsewhere
    "Audio_MSRVTT_new.pickle": "audio",
    "facefeats-avg.pickle": "face",
    "face-avg.pickle": "face",
    "face-max-with-blank-val.pickle": "face",
    "ocr-raw.pickle": "ocr",
    "ocr-w2v.pickle": "ocr",
    "ocr-w2v.pkl": "ocr",
    "ocr-feats.pkl": "ocr",
    "speech-w2v.pickle": "speech",
    "stt_w2v.pickle": "speech",
    "goog_w2v-speech-raw.pickle": "speech",
    "vggish-raw.pickle": "audio",
    "vggish-audio-raw.pickle": "audio",
    "vggish-raw.hickle": "audio",
}
MIECH = "miech-"  # the splits of 1k-B
MIECH_DATASET = "1k-B"
MIECH_FILES = {
    "antoine-rgb": "antoine/resnet_features.pickle",
    "audio": "antoine/audio_features.pickle",
    "face": "antoine/facefeats-clone.pickle",
    "flow": "antoine/flow_features.pickle",
}
EXPECTED = {  # expert → where the published downloads have it
    "imagenet.resnext101_32x48d.0": "aggregated_imagenet_*/resnext101_32x48d-avg.pickle",
    "imagenet.senet154.0": "aggregated_imagenet_*/senet154-avg.pickle",
    "r2p1d.r2p1d-ig65m.0": "aggregated_r2p1d_*/r2p1d-ig65m-avg.pickle",
    "i3d.i3d.0": "aggregated_i3d_*/i3d-avg.pickle",
    "scene.densenet161.0": "aggregated_scene_*/densenet161-avg.pickle",
    "face": "aggregated_face_feats/*",
    "ocr": "aggregated_ocr_feats/*",
    "audio": "aggregated_audio*/*",
    "speech": "aggregated_speech*/*",
}
SILENT = ("audio", "speech")  # MSVD has no sound
VISUAL = re.compile(r"aggregated_(?P<type>.+?)_\d+fps_\d+px_stride.*")
MODEL = re.compile(r"(?P<model>.+?)-(?P<agg>avg|max|raw|ent|fixed_seg)(?P<more>-.+)?")
TEXT_TAIL = re.compile(r"-(?:caption-)?(?:train|val|test|val_?1|val_?2)$|-feats$|-text$")
TEXT_NAMES = {"w2v_MSRVTT_openAIGPT": "openai", "w2v_MSRVTT_transformer": "bertxl", "w2v_MSRVTT": "w2v"}


@dataclass
class PickledTree:
    """A folder of pickled features; CE's and TeachText's trees differ in what else lies there."""

    root: Path
    dataset: str
    kind: str = "ce"
    expected: tuple[str, ...] = tuple(EXPECTED)
    miech: bool = False  # whether the features are those of 1k-B
    _tables: dict[str, Table] = field(default_factory=dict, repr=False)
    _texts: dict[str, list[Table]] = field(default_factory=dict, repr=False)

    @cached_property
    def files(self) -> dict[str, Path]:
        """Expert → file, by name."""
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
        return tuple(self.files)

    @property
    def missing(self) -> Sequence[Missing]:
        locations = {**EXPECTED, **(MIECH_FILES if self.miech else {})}
        silent = SILENT if self.dataset == "MSVD" else ()
        without = "the other experts; models trained with this one see it as absent everywhere"
        found = [
            Missing(f"features of {expert}", self.root / locations[expert], without)
            for expert in self.expected
            if expert not in self.files and expert not in silent
        ]
        return (*found, *self.lists.missing)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """MSVD's item → the name that some of its files have for it; empty for other datasets."""
        path = self.root / MAPPING
        return {item: str(name) for item, name in read_mapping(path).items()} if path.is_file() else {}

    @cached_property
    def lists(self) -> Lists:
        return Lists(self.root, self.dataset, aliases=self.aliases)

    def ids(self, expert: str) -> Sequence[str]:
        return self._table(expert).ids

    def read(self, expert: str, item: str) -> Track | Absent:
        table = self._table(expert)
        if item not in table:
            return Absent(f"not in {table.path.name}")
        try:
            return as_track(table[item])
        except DatasetError as error:
            raise DatasetError(f"{item} in {table.path}: {error}") from None

    def source(self, expert: str) -> str:
        path = self._file(expert)
        return f"{path.relative_to(self.root)}, {path.stat().st_size} bytes"

    @property
    def splits(self) -> Sequence[str]:
        return self.lists.names

    def split(self, name: str) -> Split:
        return self.lists.split(name)

    def for_split(self, split: str) -> Self:
        """The tree with the features that the released code reads for a split.

        1k-B's are a dataset of their own, `MSRVTT-1k-B`: its faces have another length than those of the
        other splits, and the same video cannot have both under one name.
        """
        is_miech = pick_split(split, self.splits).startswith(MIECH)
        return self._miech_tree if is_miech and not self.miech else self

    @cached_property
    def _miech_tree(self) -> Self:
        return replace(self, dataset=f"{self.dataset}-{MIECH_DATASET}", miech=True, _tables={})

    @cached_property
    def text_files(self) -> dict[str, list[Path]]:
        """Word features → their files (MSVD and ActivityNet have one per split)."""
        found: dict[str, list[Path]] = {}
        for folder in TEXT_FOLDERS:
            for path in sorted((self.root / folder).glob("*")):
                if path.suffix in SUFFIXES:
                    stem = TEXT_NAMES.get(path.stem, TEXT_TAIL.sub("", path.stem))
                    found.setdefault(stem, []).append(path)
        return found

    def chosen(self, split: str) -> dict[str, int]:
        """Item → the number of its one caption that counts in this split; empty where all do."""
        return self.lists.chosen(split)

    def words(self, text: str, item: str) -> list[Float32]:
        """Word features `[words, dim]` of each caption of an item; empty where the files have none."""
        if text not in self.text_files:
            known = ", ".join(self.text_files) or "none"
            raise DatasetError(f"there are no {text!r} word features in {self.root}; there are {known}")
        if text not in self._texts:
            self._texts[text] = [Table(path, self.aliases) for path in self.text_files[text]]
        for table in self._texts[text]:
            if item in table:
                return [word_rows(value, item) for value in table[item]]
        return []

    def _file(self, expert: str) -> Path:
        if expert not in self.files:
            raise DatasetError(
                f"{self.root} has no expert {expert!r}; it has {', '.join(self.files) or 'none'}"
            )
        return self.files[expert]

    def _table(self, expert: str) -> Table:
        if expert not in self._tables:
            self._tables[expert] = Table(self._file(expert), self.aliases)
        return self._tables[expert]


def open_ce(folder: Path, dataset: str | None = None) -> PickledTree:
    """The tree at a dataset's folder, or at its `structured-symlinks`."""
    root = folder / FOLDER if looks_pickled(folder / FOLDER) else folder
    if not looks_pickled(root):
        raise DatasetError(
            f"{folder} is not a Collaborative Experts tree: it has no {FOLDER}/aggregated_… folders"
        )
    return PickledTree(root, dataset or dataset_name(root))


def looks_pickled(root: Path) -> bool:
    return any(path.is_dir() for path in root.glob("aggregated_*"))


def dataset_name(root: Path) -> str:
    """The dataset that a tree is of: the last folder above it that is no part of the layout."""
    inner = (FOLDER, "high-quality", "symlinked-feats", "vid_feat_files", "mult_h5", "data")
    names = [name for name in root.resolve().parts if name not in inner and name != "/"]
    return names[-1] if names else "dataset"


def word_rows(value: object, item: str) -> Float32:
    try:
        rows = as_rows(value)
    except WordreelError as error:
        raise DatasetError(f"word features of {item}: {error}") from None
    return np.zeros((0, 0), np.float32) if rows is None else rows.astype(np.float32)


def _experts(root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    spare: list[tuple[str, Path]] = []
    for path in sorted([*root.glob("aggregated_*/*"), *root.glob("antoine/*")]):
        if path.suffix not in SUFFIXES or path.parent.name in TEXT_FOLDERS:
            continue
        plain = next((name for name in PLAIN if path.parent.name.startswith(f"aggregated_{name}")), None)
        name = (
            CANONICAL.get(path.name)
            or _visual(path)
            or f"{path.parent.name.removeprefix('aggregated_')}.{path.stem}"
        )
        if plain and name not in PLAIN:
            spare.append((plain, path))
        elif name in found:
            found[f"{name}@{path.parent.name}"] = path
        else:
            found[name] = path
    for name, path in spare:  # files under names of their own: the expert itself where it has no other
        found[f"{name}.{path.stem}" if name in found else name] = path
    return found


def _visual(path: Path) -> str | None:
    folder, file = VISUAL.fullmatch(path.parent.name), MODEL.fullmatch(path.stem)
    if folder is None or file is None:
        return None
    kind = "face" if folder["type"] == "facefeats" else folder["type"]
    name = "face" if kind == "face" else f"{kind}.{file['model']}.0"
    return name + ("" if file["agg"] == "avg" else f".{file['agg']}") + (file["more"] or "").replace("-", ".")
