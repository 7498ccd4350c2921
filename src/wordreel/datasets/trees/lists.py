"""Split lists and caption pickles, as CE, TeachText, MMT and CLIP4Clip keep them beside their features.

A list is a text file of one id a line: `train_list.txt` is the split `train`, `val_list_jsfusion.txt` the
split `jsfusion-val`, `val_1_list.txt` the split `val_1`. Captions are a pickle id → sentences, each a list of
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.datasets.trees.tables import Table, read_mapping
from wordreel.datasets.types import Caption, Item, Missing, Split
from wordreel.errors import DatasetError

LIST = re.compile(r"(?P<part>[A-Za-z0-9]+(?:_\d+)?)_list(?:_(?P<variant>\w+))?\.txt")
CHALLENGE = re.compile(r"(?P<name>public_server_(?:val|test))\.txt")
CHOSEN = {"jsfusion-val": "jsfusion_val_caption_idx.pkl"}  # id → the one caption that counts in this split
CAPTION_FILES = (
    "raw-captions*.pkl",
    "raw_captions*.pkl",
    "split_raw_captions*.pkl",  # QuerYDSegments
)
CAPTIONS_FOLDER = "structured-symlinks"  # QuerYD has one inside the folder of that name
LSMDC = {
    "train": "LSMDC16_annos_training.csv",
    "val": "LSMDC16_annos_val.csv",
    "test": "LSMDC16_challenge_1000_publictect.csv",
}
MOST = 100_000  # captions of an item, or words of a caption: transcripts are long
WITH_ENDINGS = ("didemo",)  # datasets whose lists name files ("1234_abc.mov") where features say "1234_abc"


def find_lists(folder: Path) -> dict[str, Path]:
    """Every split list in a folder, by the name of its split."""
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.txt")):
        if match := LIST.fullmatch(path.name):
            part, variant = match["part"], match["variant"]
            found[f"{variant}-{part}" if variant else part] = path
        elif match := CHALLENGE.fullmatch(path.name):
            found[match["name"]] = path
    for part, name in LSMDC.items():
        if (folder / name).is_file():
            found.setdefault(part, folder / name)
    return found


def read_list(path: Path, dataset: str = "") -> list[str]:
    """The ids of a list, each once; LSMDC's tables name the clip in their first column."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DatasetError(f"the list {path} cannot be read: {error}") from None
    ids = [line.split("\t")[0].strip() for line in lines]
    if dataset.lower() in WITH_ENDINGS:
        ids = [item.split(".")[0] for item in ids]
    return list(dict.fromkeys(item for item in ids if item))


def pick_split(name: str, known: Sequence[str]) -> str:
    """A split by its name, or by its last part where only one has it.

    >>> pick_split("test", ["full-train", "full-test"])
    'full-test'
    """
    if name in known:
        return name
    ending = [split for split in known if split.endswith(f"-{name}")]
    if len(ending) == 1:
        return ending[0]
    raise DatasetError(f"there is no split {name!r}; this folder lists {', '.join(known) or 'none'}")


def sentences(value: Any) -> list[str]:
    """The captions of one item: a list of word lists, a list of sentences, one word list, or one sentence.

    >>> sentences([["a", "man"], ["he", "sings"]]), sentences(["a man", "a song"]), sentences(["a", "man"])
    (['a man', 'he sings'], ['a man', 'a song'], ['a man'])
    """
    if isinstance(value, str | bytes):
        return [_text(value)]
    parts = _listed(value)
    if parts and all(isinstance(word, str | bytes) for word in parts):
        words = [_text(word) for word in parts]
        return words if any(" " in word.strip() for word in words) else [" ".join(words)]
    told, left = [], 10 * MOST
    for part in parts:
        line = [part] if isinstance(part, str | bytes) else _listed(part)
        left -= len(line)  # counted as it goes: a small pickle can name one long list very often
        if left < 0:
            raise DatasetError("more words than the captions of one item have")
        if not all(isinstance(word, str | bytes) for word in line):
            raise DatasetError("captions that are neither sentences nor lists of words")
        told.append(" ".join(map(_text, line)))
    return told


def _listed(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise DatasetError(f"a {type(value).__name__} where captions are expected")
    if len(value) > MOST:
        raise DatasetError(f"{len(value)} captions or words for one item; {MOST} are allowed")
    return list(value)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@dataclass
class Lists:
    """The split lists of a folder, and the captions for them: its pickles, or what `tell` says."""

    folder: Path
    dataset: str
    tell: Callable[[str], Sequence[Caption]] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    _captions: list[Table] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(find_lists(self.folder))

    @property
    def missing(self) -> list[Missing]:
        found = []
        if not self.names:
            found.append(
                Missing(
                    "split lists",
                    self.folder / "train_list.txt",
                    "the features can be imported as one set without train and test",
                )
            )
        if self.tell is None and not self._caption_files():
            found.append(
                Missing(
                    "raw captions",
                    self.folder / "raw-captions.pkl",
                    "features and splits; text-to-video evaluation needs captions from elsewhere",
                )
            )
        for split, name in CHOSEN.items():
            if split in self.names and not (self.folder / name).is_file():
                found.append(
                    Missing(
                        f"which caption of each video counts in {split}",
                        self.folder / name,
                        "all other splits; this one comes with all captions of its videos",
                    )
                )
        return found

    def split(self, name: str) -> Split:
        chosen = pick_split(name, self.names)
        ids = read_list(find_lists(self.folder)[chosen], self.dataset)
        only = self.chosen(chosen)
        items = []
        for item in ids:
            told = self.captions(item)
            if item in only and told:
                if not 0 <= only[item] < len(told):
                    raise DatasetError(
                        f"{item} has no caption {only[item]}: {CHOSEN[chosen]} is of another set"
                    )
                told = (told[only[item]],)
            items.append(Item(item, told))
        return Split(self.dataset, chosen, tuple(items), tuple(self.missing))

    def captions(self, item: str) -> tuple[Caption, ...]:
        if self.tell is not None:
            return tuple(self.tell(item))
        if self._captions is None:
            self._captions = [Table(path, self.aliases) for path in self._caption_files()]
        for table in self._captions:
            if item in table:
                return tuple(Caption(text) for text in sentences(table[item]) if text.strip())
        return ()

    def _caption_files(self) -> list[Path]:
        return [
            path
            for folder in (self.folder, self.folder / CAPTIONS_FOLDER)
            for pattern in CAPTION_FILES
            for path in sorted(folder.glob(pattern))
        ]

    def chosen(self, split: str) -> dict[str, int]:
        """Item → the number of the one caption that counts in this split; empty where all do."""
        path = self.folder / CHOSEN.get(split, "")
        if split not in CHOSEN or not path.is_file():
            return {}
        try:
            return {item: int(number) for item, number in read_mapping(path).items()}
        except (TypeError, ValueError) as error:
            raise DatasetError(f"{path} does not map ids to caption numbers: {error}") from None


def all_ids(groups: Iterable[Iterable[str]]) -> list[str]:
    """Every id once, in the order met."""
    return list(dict.fromkeys(item for group in groups for item in group))
