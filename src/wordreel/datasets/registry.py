"""Reading captions by name or by file: one door to every dataset, protocol and plain collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from wordreel.datasets import (
    activitynet,
    addresses,
    audiocaps,
    coco,
    cub,
    didemo,
    flickr,
    lsmdc,
    msrvtt,
    msvd,
    plain,
    protocols,
    queryd,
    rules,
    sop,
    vatex,
)
from wordreel.datasets import folder as captioned
from wordreel.datasets.files import Wanted
from wordreel.datasets.types import Split
from wordreel.errors import DatasetError


@dataclass(frozen=True)
class Dataset:
    """A dataset with published annotation files."""

    title: str
    splits: tuple[str, ...]
    files: tuple[Wanted, ...]
    read: Callable[[Path, str], Split]


DATASETS = {
    "msrvtt": Dataset("MSR-VTT", msrvtt.SPLITS, msrvtt.FILES, msrvtt.read),
    "msvd": Dataset("MSVD", msvd.SPLITS, msvd.FILES, msvd.read),
    "lsmdc": Dataset("LSMDC", lsmdc.SPLITS, lsmdc.FILES, lsmdc.read),
    "didemo": Dataset("DiDeMo", didemo.SPLITS, didemo.FILES, didemo.read),
    "activitynet": Dataset("ActivityNet Captions", activitynet.SPLITS, activitynet.FILES, activitynet.read),
    "vatex": Dataset("VATEX", vatex.SPLITS, vatex.FILES, vatex.read),
    "queryd": Dataset("QuerYD", queryd.SPLITS, queryd.FILES, queryd.read),
    "audiocaps": Dataset("AudioCaps", audiocaps.SPLITS, audiocaps.FILES, audiocaps.read),
    "coco": Dataset("COCO captions", coco.SPLITS, coco.FILES, coco.read),
    "flickr8k": Dataset("Flickr8k", flickr.SPLITS, flickr.FILES_8K, flickr.read_8k),
    "flickr30k": Dataset("Flickr30k", flickr.SPLITS, flickr.FILES_30K, flickr.read_30k),
    "cub": Dataset("CUB-200-2011", cub.SPLITS, cub.FILES, cub.read),
    "sop": Dataset("Stanford Online Products", sop.SPLITS, sop.FILES, sop.read),
}


def read(source: str | Path, split: str | None = None, folder: Path | None = None) -> Split:
    """Captions from whatever there is.

    With a folder, `source` is a protocol (its split, its captions rule) or a dataset (every caption, with
    times where the annotations have them). Without, `source` is a file of ours (.csv, .tsv, .jsonl), a JSON
    file or an address in one (FILE.json:key), or a folder with `captions.json`.
    """
    if folder is not None:
        return _named(str(source), split, folder)
    path = Path(source)
    if addresses.is_address(str(source)):
        return addresses.read_address(str(source), split)
    if plain.is_plain(path):
        return plain.read(path, split)
    if path.is_dir():
        if not captioned.is_captioned(path):
            raise DatasetError(
                f"{path} has no {captioned.CAPTIONS}; say which dataset it holds: {', '.join(DATASETS)}"
            )
        return captioned.read(path, split)
    if str(source) in _names():
        raise DatasetError(f"{source} is a dataset; say in which folder its files are")
    raise DatasetError(
        f"{source} is neither a file of captions (.csv, .tsv, .jsonl, .json), nor a folder, nor a dataset"
    )


def _named(name: str, split: str | None, folder: Path) -> Split:
    protocol = protocols.load(name) if name in protocols.names() else None
    dataset = protocol.dataset if protocol else name
    if dataset not in DATASETS:
        close = get_close_matches(name.lower(), _names(), n=4, cutoff=0.4)
        raise DatasetError(
            f"there is no dataset or protocol {name!r}; "
            f"{'did you mean ' + ' or '.join(close) + '?' if close else 'there are ' + ', '.join(_names())}"
        )
    wanted = split or (protocol.split if protocol else None)
    if captioned.is_captioned(folder):
        found = captioned.read(folder, wanted, dataset)
    elif wanted is None:
        raise DatasetError(f"say which split of {name}: {', '.join(DATASETS[dataset].splits)}")
    else:
        found = DATASETS[dataset].read(folder, wanted)
    return rules.apply(found, protocol.rule, protocol.limit) if protocol else found


def _names() -> list[str]:
    return sorted({*DATASETS, *protocols.names()})
