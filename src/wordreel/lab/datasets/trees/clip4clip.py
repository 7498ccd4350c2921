"""CLIP4Clip's data folders: captions in CSV, JSON or pickles, and a folder of videos. No features.

    MSRVTT        MSRVTT_train.9k.csv, MSRVTT_train.7k.csv, MSRVTT_JSFUSION_test.csv, MSRVTT_data.json
    MSVD          {train,val,test}_list.txt, raw-captions.pkl
    LSMDC         LSMDC16_annos_training.csv, …_val.csv, LSMDC16_challenge_1000_publictect.csv
    ActivityNet   train_ids.json, val_ids.json, train.json, val_1.json
    DiDeMo        {train,val,test}_list.txt, {train,val,test}_data.json

ActivityNet and DiDeMo are searched by paragraph: an item's sentences are joined to one caption, in order.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.split_builder import CaptionsById
from wordreel.lab.datasets.trees.split_lists import LSMDC, SplitLists, pick_split, read_split_list
from wordreel.lab.datasets.types import Caption, Item, Missing, Split
from wordreel.types import Absent, Float32, Track

MSRVTT = {
    "train-9k": "MSRVTT_train.9k.csv",
    "train-7k": "MSRVTT_train.7k.csv",
    "test": "MSRVTT_JSFUSION_test.csv",
}
MSRVTT_DATA = "MSRVTT_data.json"
ACTIVITYNET = {"train": ("train_ids.json", "train.json"), "val": ("val_ids.json", "val_1.json")}
DIDEMO = {part: (f"{part}_list.txt", f"{part}_data.json") for part in ("train", "val", "test")}
SIGNATURE_FILES = {  # a file that identifies each dataset
    "MSRVTT": (*MSRVTT.values(), MSRVTT_DATA),
    "LSMDC": tuple(LSMDC.values()),
    "ActivityNet": ("train_ids.json", "val_ids.json"),
    "DiDeMo": ("train_data.json", "val_data.json", "test_data.json"),
    "MSVD": ("raw-captions.pkl",),
}
MEDIA = (".mp4", ".avi", ".webm", ".mkv", ".mov", ".m4v", ".mpg", ".mpeg", ".flv", ".wmv", ".3gp")


@dataclass
class CLIP4ClipTree:
    """Annotations of one dataset, and the videos they are about."""

    root: Path
    dataset: str
    videos: Path  # searched recursively
    kind: str = "clip4clip"
    experts: Sequence[str] = ()

    @property
    def missing(self) -> Sequence[Missing]:
        """Annotation files that are not here, and the videos if there are none."""
        annotations = {
            "MSRVTT": ((MSRVTT_DATA, "the test split"), (MSRVTT["test"], "the training splits")),
            "LSMDC": tuple((name, "the other splits") for name in LSMDC.values()),
            "ActivityNet": tuple((name, "the other split") for pair in ACTIVITYNET.values() for name in pair),
            "DiDeMo": tuple((name, "the other splits") for pair in DIDEMO.values() for name in pair),
            "MSVD": (
                ("raw-captions.pkl", "the lists"),
                *((f"{p}_list.txt", "the other splits") for p in DIDEMO),
            ),
        }
        missing = [
            Missing(f"{self.dataset} annotations", self.root / name, without)
            for name, without in annotations[self.dataset]
            if not (self.root / name).is_file()
        ]
        if not self._media:
            without = "captions of videos that are in the library already"
            missing.append(Missing("video files", self.videos, without))
        return tuple(missing)

    def ids(self, expert: str) -> Sequence[str]:
        raise self._no_features()

    def read(self, expert: str, item: str) -> Track | Absent:
        raise self._no_features()

    def _no_features(self) -> DatasetError:
        step = NextStep("compute features from the videos", f"add {self.videos}")
        return DatasetError(f"{self.root} holds captions but no features", step)

    def for_split(self, split: str) -> CLIP4ClipTree:
        return self

    def source(self, expert: str) -> str:
        return ""

    @property
    def splits(self) -> Sequence[str]:
        names: dict[str, tuple[str, ...]] = {
            "MSRVTT": tuple(part for part, name in MSRVTT.items() if (self.root / name).is_file()),
            "LSMDC": tuple(part for part, name in LSMDC.items() if (self.root / name).is_file()),
            "ActivityNet": tuple(p for p, pair in ACTIVITYNET.items() if (self.root / pair[0]).is_file()),
            "DiDeMo": tuple(p for p, pair in DIDEMO.items() if (self.root / pair[0]).is_file()),
            "MSVD": SplitLists(self.root, self.dataset).names,
        }
        return names[self.dataset]

    def split(self, name: str) -> Split:
        chosen = pick_split(name, self.splits)
        readers: dict[str, Callable[[Path, str], list[Item]]] = {
            "MSRVTT": _msrvtt, "LSMDC": _lsmdc, "ActivityNet": _activitynet, "DiDeMo": _didemo, "MSVD": _msvd
        }  # fmt: skip
        try:
            items = readers[self.dataset](self.root, chosen)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise DatasetError(
                f"the annotations of {chosen} in {self.root} are not as expected: {error!r}"
            ) from None
        return Split(
            self.dataset,
            chosen,
            tuple(replace(item, path=self._media.get(item.id)) for item in items),
            tuple(self.missing),
        )

    def caption_index(self, split: str) -> dict[str, int]:
        return {}

    @property
    def word_feature_names(self) -> Sequence[str]:
        return ()

    def word_features(self, name: str, item: str) -> list[Float32]:
        raise self._no_features()

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
    known = {name.lower(): name for name in SIGNATURE_FILES}
    name = known.get(dataset.lower()) if dataset else detect_dataset(folder)
    if name is None:
        files = ", ".join(names[0] for names in SIGNATURE_FILES.values())
        raise DatasetError(f"{folder} is not a CLIP4Clip folder: it has none of {files}")
    return CLIP4ClipTree(folder, name, videos or folder)


def detect_dataset(folder: Path) -> str | None:
    """The dataset whose annotation files are in a folder."""
    for dataset, names in SIGNATURE_FILES.items():
        if any((folder / name).is_file() for name in names):
            return dataset
    return None


def _msrvtt(root: Path, split: str) -> list[Item]:
    with (root / MSRVTT[split]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ids = dict.fromkeys(row["video_id"] for row in rows)
    captions: CaptionsById = {item: [] for item in ids}
    if split == "test":
        for row in rows:
            captions[row["video_id"]].append(Caption(row["sentence"]))
    elif (root / MSRVTT_DATA).is_file():
        for sentence in _json(root / MSRVTT_DATA)["sentences"]:
            if sentence["video_id"] in captions:
                captions[sentence["video_id"]].append(Caption(str(sentence["caption"])))
    return _items(captions)


def _lsmdc(root: Path, split: str) -> list[Item]:
    captions: CaptionsById = {}
    for line in (root / LSMDC[split]).read_text(encoding="utf-8", errors="replace").splitlines():
        cells = line.strip().split("\t")
        if len(cells) == 6:
            captions.setdefault(cells[0], []).append(Caption(cells[5]))
        elif line.strip():
            raise DatasetError(
                f"{root / LSMDC[split]} has a line of {len(cells)} columns instead of 6: {line:.60}"
            )
    return _items(captions)


def _activitynet(root: Path, split: str) -> list[Item]:
    ids, annotations = (_json(root / name) for name in ACTIVITYNET[split])
    if not isinstance(ids, list | dict) or not isinstance(annotations, dict):
        raise DatasetError(f"{root / ACTIVITYNET[split][1]} does not map ids to sentences")
    captions: CaptionsById = {}
    for name in ids:  # "v_" and the id of the video
        if name in annotations:
            text = " ".join(str(sentence).strip() for sentence in annotations[name]["sentences"])
            captions[str(name)[2:]] = [Caption(text)]
    return _items(captions)


def _didemo(root: Path, split: str) -> list[Item]:
    lists, data = DIDEMO[split]
    texts: dict[str, list[str]] = {item: [] for item in read_split_list(root / lists)}
    for moment in _json(root / data):
        if moment["video"] in texts:
            texts[moment["video"]].append(str(moment["description"]))
    return _items({item: [Caption(" ".join(parts))] for item, parts in texts.items() if parts})


def _msvd(root: Path, split: str) -> list[Item]:
    return list(SplitLists(root, "MSVD").split(split).items)


def _items(captions: CaptionsById) -> list[Item]:
    return [Item(item, tuple(own)) for item, own in captions.items()]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
