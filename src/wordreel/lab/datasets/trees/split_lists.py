"""Split lists and caption pickles, which CE, TeachText, MMT and CLIP4Clip store beside their features.

A list is a text file with one id per line: `train_list.txt` is the split `train`, `val_list_jsfusion.txt` the
split `jsfusion-val`, `val_1_list.txt` the split `val_1`, `final_filtered_test_list.txt` (AudioCaps) the split
`test`. A caption pickle maps ids to sentences, each a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wordreel.errors import DatasetError
from wordreel.lab.datasets.array_files import read_mapping
from wordreel.lab.datasets.caption_pickles import parse_captions
from wordreel.lab.datasets.trees.feature_files import FeatureFile
from wordreel.lab.datasets.types import Caption, Item, Missing, Split

LIST = re.compile(r"(?:final_)?(?:filtered_)?(?P<part>[A-Za-z0-9]+(?:_\d+)?)_list(?:_(?P<variant>\w+))?\.txt")
CHALLENGE = re.compile(r"(?P<name>public_server_(?:val|test))\.txt")
CAPTION_INDEX_FILES = {"jsfusion-val": "jsfusion_val_caption_idx.pkl"}  # id → the one caption that counts
CAPTION_FILES = ("raw-captions*.pkl", "raw_captions*.pkl", "split_raw_captions*.pkl")
CAPTIONS_FOLDER = "structured-symlinks"  # QuerYD has one inside the folder of that name
LSMDC = {
    "train": "LSMDC16_annos_training.csv",
    "val": "LSMDC16_annos_val.csv",
    "test": "LSMDC16_challenge_1000_publictect.csv",
}
NO_LISTS = "the features can be imported as one set without train and test"
NO_CAPTIONS = "features and splits; text-to-video evaluation needs captions from elsewhere"
NO_INDEX = "all other splits; this one comes with all captions of its videos"
DATASETS_WITH_SUFFIXES = ("didemo",)  # their lists name files ("1_a.mov") where features have "1_a"


def find_split_lists(folder: Path) -> dict[str, Path]:
    """Find every split list in a folder, by the name of its split."""
    lists: dict[str, Path] = {}
    for path in sorted(folder.glob("*.txt")):
        if match := LIST.fullmatch(path.name):
            part, variant = match["part"], match["variant"]
            lists[f"{variant}-{part}" if variant else part] = path
        elif match := CHALLENGE.fullmatch(path.name):
            lists[match["name"]] = path
    for part, name in LSMDC.items():
        if (folder / name).is_file():
            lists.setdefault(part, folder / name)
    return lists


def read_split_list(path: Path, dataset: str = "") -> list[str]:
    """Return the ids of a list without duplicates; in LSMDC's tables the id is the first column."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DatasetError(f"the list {path} cannot be read: {error}") from None
    ids = [line.split("\t")[0].strip() for line in lines]
    if dataset.lower() in DATASETS_WITH_SUFFIXES:
        ids = [item.split(".")[0] for item in ids]
    return list(dict.fromkeys(item for item in ids if item))


def pick_split(name: str, known: Sequence[str]) -> str:
    """Return a split by its name, or by its last part if only one split ends with it.

    >>> pick_split("test", ["full-train", "full-test"])
    'full-test'
    """
    if name in known:
        return name
    ending = [split for split in known if split.endswith(f"-{name}")]
    if len(ending) == 1:
        return ending[0]
    raise DatasetError(f"there is no split {name!r}; this folder lists {', '.join(known) or 'none'}")


@dataclass
class SplitLists:
    """The split lists of a folder with their captions: from its pickles, or from `read_captions`."""

    folder: Path
    dataset: str
    read_captions: Callable[[str], Sequence[Caption]] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    _caption_pickles: list[FeatureFile] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(find_split_lists(self.folder))

    @property
    def missing(self) -> list[Missing]:
        missing = []
        if not self.names:
            missing.append(("split lists", "train_list.txt", NO_LISTS))
        if self.read_captions is None and not self._caption_files():
            missing.append(("raw captions", "raw-captions.pkl", NO_CAPTIONS))
        for split, name in CAPTION_INDEX_FILES.items():
            if split in self.names and not (self.folder / name).is_file():
                missing.append((f"which caption of each video counts in {split}", name, NO_INDEX))
        return [Missing(what, self.folder / name, without) for what, name, without in missing]

    def split(self, name: str) -> Split:
        name = pick_split(name, self.names)
        ids = read_split_list(find_split_lists(self.folder)[name], self.dataset)
        index = self.caption_index(name)
        items = []
        for item in ids:
            captions = self.captions(item)
            if item in index and captions:
                if not 0 <= index[item] < len(captions):
                    raise DatasetError(
                        f"{item} has no caption {index[item]}: {CAPTION_INDEX_FILES[name]} is of another set"
                    )
                captions = (captions[index[item]],)
            items.append(Item(item, captions))
        return Split(self.dataset, name, tuple(items), tuple(self.missing))

    def captions(self, item: str) -> tuple[Caption, ...]:
        if self.read_captions is not None:
            return tuple(self.read_captions(item))
        if self._caption_pickles is None:
            self._caption_pickles = [FeatureFile(path, self.aliases) for path in self._caption_files()]
        for pickled in self._caption_pickles:
            if item in pickled:
                return tuple(Caption(text) for text in parse_captions(pickled[item], item) if text.strip())
        return ()

    def caption_index(self, split: str) -> dict[str, int]:
        """Map each item to the index of its one caption that counts in this split; empty where all count."""
        path = self.folder / CAPTION_INDEX_FILES.get(split, "")
        if split not in CAPTION_INDEX_FILES or not path.is_file():
            return {}
        try:
            return {item: int(number) for item, number in read_mapping(path).items()}
        except (TypeError, ValueError) as error:
            raise DatasetError(f"{path} does not map ids to caption numbers: {error}") from None

    def _caption_files(self) -> list[Path]:
        return [
            path
            for folder in (self.folder, self.folder / CAPTIONS_FOLDER)
            for pattern in CAPTION_FILES
            for path in sorted(folder.glob(pattern))
        ]


def unique_ids(groups: Iterable[Iterable[str]]) -> list[str]:
    """Return the ids of all groups without duplicates, in order of first occurrence."""
    return list(dict.fromkeys(item for group in groups for item in group))
