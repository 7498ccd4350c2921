"""CLIP4Clip's folders: captions in CSV, JSON or pickles, and a folder of videos; no features.

    MSRVTT        MSRVTT_train.9k.csv, MSRVTT_train.7k.csv, MSRVTT_JSFUSION_test.csv, MSRVTT_data.json
    MSVD          {train,val,test}_list.txt, raw-captions.pkl
    LSMDC         LSMDC16_annos_training.csv, …_val.csv, LSMDC16_challenge_1000_publictect.csv
    ActivityNet   train_ids.json, val_ids.json, train.json, val_1.json
    DiDeMo        {train,val,test}_list.txt, {train,val,test}_data.json

ActivityNet and DiDeMo are searched by paragraph: an item's sentences are one caption, joined in order.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wordreel.datasets.trees.lists import LSMDC, Lists, pick_split, read_list
from wordreel.datasets.types import Caption, Item, Missing, Split
from wordreel.errors import DatasetError
from wordreel.types import Absent, Track

Said = dict[str, list[Caption]]

MSRVTT = {
    "train-9k": "MSRVTT_train.9k.csv",
    "train-7k": "MSRVTT_train.7k.csv",
    "test": "MSRVTT_JSFUSION_test.csv",
}
MSRVTT_DATA = "MSRVTT_data.json"
ACTIVITYNET = {"train": ("train_ids.json", "train.json"), "val": ("val_ids.json", "val_1.json")}
DIDEMO = {part: (f"{part}_list.txt", f"{part}_data.json") for part in ("train", "val", "test")}
SIGNS = {  # which file tells which dataset
    "MSRVTT": (*MSRVTT.values(), MSRVTT_DATA),
    "LSMDC": tuple(LSMDC.values()),
    "ActivityNet": ("train_ids.json", "val_ids.json"),
    "DiDeMo": ("train_data.json", "val_data.json", "test_data.json"),
    "MSVD": ("raw-captions.pkl",),
}
MEDIA = (".mp4", ".avi", ".webm", ".mkv", ".mov", ".m4v", ".mpg", ".mpeg", ".flv", ".wmv", ".3gp")


@dataclass
class Clip4ClipTree:
    root: Path
    dataset: str
    videos: Path  # searched to the bottom
    kind: str = "clip4clip"
    experts: Sequence[str] = ()

    @property
    def missing(self) -> Sequence[Missing]:
        """Files of the dataset that are not here, and the videos if there are none."""
        wanted = {
            "MSRVTT": ((MSRVTT_DATA, "the test split"), (MSRVTT["test"], "the training splits")),
            "LSMDC": tuple((name, "the other splits") for name in LSMDC.values()),
            "ActivityNet": tuple((name, "the other split") for pair in ACTIVITYNET.values() for name in pair),
            "DiDeMo": tuple((name, "the other splits") for pair in DIDEMO.values() for name in pair),
            "MSVD": (
                ("raw-captions.pkl", "the lists"),
                *((f"{p}_list.txt", "the other splits") for p in DIDEMO),
            ),
        }
        found = [
            Missing(f"{self.dataset} annotations", self.root / name, without)
            for name, without in wanted[self.dataset]
            if not (self.root / name).is_file()
        ]
        if not self._media:
            without = "captions of videos that are in the library already"
            found.append(Missing("video files", self.videos, without))
        return tuple(found)

    def ids(self, expert: str) -> Sequence[str]:
        raise DatasetError(
            f"{self.root} holds captions, no features; `wordreel add` makes features of videos"
        )

    def read(self, expert: str, item: str) -> Track | Absent:
        raise DatasetError(
            f"{self.root} holds captions, no features; `wordreel add` makes features of videos"
        )

    def for_split(self, split: str) -> Clip4ClipTree:
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
            "MSVD": Lists(self.root, self.dataset).names,
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

    @cached_property
    def _media(self) -> dict[str, str]:
        """Name with and without its ending → path."""
        found: dict[str, str] = {}
        for path in sorted(self.videos.rglob("*")) if self.videos.is_dir() else ():
            if path.suffix.lower() in MEDIA and path.is_file():
                found.setdefault(path.stem, str(path))
                found.setdefault(path.name, str(path))
        return found


def open_clip4clip(folder: Path, dataset: str | None = None, videos: Path | None = None) -> Clip4ClipTree:
    """The annotations in a folder; the videos are below it too unless told otherwise."""
    known = {name.lower(): name for name in SIGNS}
    name = known.get(dataset.lower()) if dataset else guess_dataset(folder)
    if name is None:
        signs = ", ".join(names[0] for names in SIGNS.values())
        raise DatasetError(f"{folder} is not a CLIP4Clip folder: it has none of {signs}")
    return Clip4ClipTree(folder, name, videos or folder)


def guess_dataset(folder: Path) -> str | None:
    return next((name for name, signs in SIGNS.items() if any((folder / s).is_file() for s in signs)), None)


def _msrvtt(root: Path, split: str) -> list[Item]:
    with (root / MSRVTT[split]).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ids = dict.fromkeys(row["video_id"] for row in rows)
    said: Said = {item: [] for item in ids}
    if split == "test":
        for row in rows:
            said[row["video_id"]].append(Caption(row["sentence"]))
    elif (root / MSRVTT_DATA).is_file():
        for sentence in _json(root / MSRVTT_DATA)["sentences"]:
            if sentence["video_id"] in said:
                said[sentence["video_id"]].append(Caption(str(sentence["caption"])))
    return _items(said)


def _lsmdc(root: Path, split: str) -> list[Item]:
    said: Said = {}
    for line in (root / LSMDC[split]).read_text(encoding="utf-8", errors="replace").splitlines():
        cells = line.strip().split("\t")
        if len(cells) == 6:
            said.setdefault(cells[0], []).append(Caption(cells[5]))
        elif line.strip():
            raise DatasetError(
                f"{root / LSMDC[split]} has a line of {len(cells)} columns instead of 6: {line:.60}"
            )
    return _items(said)


def _activitynet(root: Path, split: str) -> list[Item]:
    ids, told = (_json(root / name) for name in ACTIVITYNET[split])
    if not isinstance(ids, list | dict) or not isinstance(told, dict):
        raise DatasetError(f"{root / ACTIVITYNET[split][1]} does not map ids to sentences")
    said: Said = {}
    for name in ids:  # "v_" and the id of the video
        if name in told:
            text = " ".join(str(sentence).strip() for sentence in told[name]["sentences"])
            said[str(name)[2:]] = [Caption(text)]
    return _items(said)


def _didemo(root: Path, split: str) -> list[Item]:
    lists, data = DIDEMO[split]
    lines: dict[str, list[str]] = {item: [] for item in read_list(root / lists)}
    for told in _json(root / data):
        if told["video"] in lines:
            lines[told["video"]].append(str(told["description"]))
    return _items({item: [Caption(" ".join(texts))] for item, texts in lines.items() if texts})


def _msvd(root: Path, split: str) -> list[Item]:
    return list(Lists(root, "MSVD").split(split).items)


def _items(said: Said) -> list[Item]:
    return [Item(item, tuple(captions)) for item, captions in said.items()]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from None
