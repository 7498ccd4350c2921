"""Read captions by name or by file: the entry point to every dataset, protocol and caption file."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets import json_captions, picture_datasets, protocols, video_datasets
from wordreel.lab.datasets.annotation_files import AnnotationFolder, published_datasets
from wordreel.lab.datasets.caption_table import is_caption_table, read_caption_table
from wordreel.lab.datasets.split_builder import apply_rule
from wordreel.lab.datasets.types import Split
from wordreel.util.text_files import is_json_address

READERS: dict[str, Callable[[AnnotationFolder, str], Split]] = {
    "msrvtt": video_datasets.msrvtt,
    "msvd": video_datasets.msvd,
    "lsmdc": video_datasets.lsmdc,
    "didemo": video_datasets.didemo,
    "activitynet": video_datasets.activitynet,
    "vatex": video_datasets.vatex,
    "queryd": video_datasets.queryd,
    "audiocaps": video_datasets.audiocaps,
    "coco": picture_datasets.coco,
    "flickr8k": picture_datasets.flickr,
    "flickr30k": picture_datasets.flickr,
    "cub": picture_datasets.cub,
    "sop": picture_datasets.sop,
}


DATASETS = published_datasets()


def read_published(name: str, split: str, folder: Path) -> Split:
    """Return one split of a dataset, with every caption, from the annotation files in a folder."""
    dataset = DATASETS[name]
    split = dataset.aliases.get(split, split)
    if split not in dataset.splits:
        raise DatasetError(f"{name} has no split {split!r}; it has {', '.join(dataset.splits)}")
    return READERS[name](AnnotationFolder(dataset, folder), split)


def read(source: str | Path, split: str | None = None, folder: Path | None = None) -> Split:
    r"""Read captions from a dataset, a protocol or a file.

    Args:
        source: With `folder`, the name of a dataset (every caption, with times if the annotations have
            them) or of a protocol (its split and caption rule). Without, a caption table (.csv, .tsv,
            .jsonl), a JSON file or an address in one (`FILE.json:key`), or a folder with `captions.json`.
        split: The split to read; None reads a protocol's own split, or all captions of a file.
        folder: The folder of the dataset's annotation files.

    Returns:
        The items in the dataset's order, with their captions.

    Raises:
        DatasetError: The source or the split is unknown, or a file is missing or malformed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "captions.csv"
    ...     _ = table.write_text("path,caption\na.mp4,a man sings\na.mp4,somebody sings\n")
    ...     read(table).captions
    {'a.mp4': ['a man sings', 'somebody sings']}
    """
    if folder is not None:
        return _read_named(str(source), split, folder)
    path = Path(source)
    if is_json_address(str(source)):
        return json_captions.read_captions_at(str(source), split)
    if is_caption_table(path):
        return read_caption_table(path, split)
    if path.is_dir():
        if not json_captions.is_captioned(path):
            raise DatasetError(
                f"{path} has no {json_captions.CAPTIONS}",
                NextStep(f"name the dataset it holds: {', '.join(DATASETS)}"),
            )
        return json_captions.read_folder(path, split)
    if str(source) in _names():
        raise DatasetError(
            f"{source} is a dataset without a folder", NextStep("give the folder of its annotation files")
        )
    raise DatasetError(
        f"{source} is neither a caption file (.csv, .tsv, .jsonl, .json), nor a folder, nor a dataset"
    )


def _read_named(name: str, split: str | None, folder: Path) -> Split:
    protocol = protocols.load(name) if name in protocols.names() else None
    dataset = protocol.dataset if protocol else name
    if dataset not in DATASETS:
        close = get_close_matches(name.lower(), _names(), n=4, cutoff=0.4)
        raise DatasetError(
            f"there is no dataset or protocol {name!r}; "
            f"{'did you mean ' + ' or '.join(close) + '?' if close else 'there are ' + ', '.join(_names())}"
        )
    split = split or (protocol.split if protocol else None)
    if json_captions.is_captioned(folder):
        result = json_captions.read_folder(folder, split, dataset)
    elif split is None:
        splits = ", ".join(DATASETS[dataset].splits)
        raise DatasetError(f"{name} has several splits", NextStep(f"choose one of {splits}"))
    else:
        result = read_published(dataset, split, folder)
    return apply_rule(result, protocol.rule, protocol.limit) if protocol else result


def _names() -> list[str]:
    return sorted({*DATASETS, *protocols.names()})
