"""What the text tower learns from: embeddings of pictures and frames by the eyes, with their captions.

A pack is one `NAME.npz` with `ids [rows]` (file names without ending) and `rows [rows, 512]`: one row for a
picture, one for each chosen frame of a video. `prepare` makes it of a library's `clip` tracks. Pictures that
are kept for measuring are left out of every pack.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.types import Float32, Track

HELD_OUT = 1000  # COCO pictures that are measured and never trained on


@dataclass(frozen=True, eq=False)
class Item:
    """A picture or a video: `rows [n, 512]`, unit vectors of the eyes, and its captions."""

    rows: Float32
    captions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Material:
    """What is trained on, and what is measured, by collection."""

    training: tuple[Item, ...]
    measured: dict[str, tuple[Item, ...]]


def prepare(library: Path, pack: Path) -> None:
    """Write the pack of a library."""
    store = LibraryStore(library)
    ids, rows = [], []
    for file in store.files():
        track = store.track(file.content, "clip")
        if isinstance(track, Track):
            ids += [Path(file.path).stem] * len(track)
            rows.append(track.values)
    pack.parent.mkdir(parents=True, exist_ok=True)
    np.savez(pack, ids=np.array(ids), rows=np.concatenate(rows).astype(np.float16))


def load(data: Path, packs: Path) -> Material:
    """Return the packs with their captions.

    Trained on: Flickr8k train, COCO less a thousand pictures, MSVD train and val. Measured: Flickr8k dev,
    those thousand, MSVD test, and the MSR-VTT videos, which nothing is trained on. Packs named `coco-…` hold
    further COCO pictures.
    """
    flickr = {split: _by_stem(said) for split, said in _read(data / "flickr8k" / "captions.json").items()}
    coco = {
        **_read(data / "coco" / "captions_more.json.gz"),
        **_by_stem(_read(data / "coco" / "captions.json")["train"]),
    }
    never = set(_read(data / "coco" / "held_out_ids.json.gz"))
    msvd, official = _read(data / "msvd" / "captions.json"), _read(data / "msvd" / "splits.json")["official"]
    first = _items(packs / "coco.npz", coco, never)
    kept = set(held_out([name for name, item in first.items() if len(item.captions) >= 5]))
    pictures = _items(packs / "flickr8k.npz", {**flickr["train"], **flickr["dev"]})
    videos = _items(packs / "msvd.npz", msvd)
    training = [item for name, item in pictures.items() if name in flickr["train"]]
    training += [item for name, item in first.items() if name not in kept]
    for pack in sorted(packs.glob("coco-*.npz")):
        training += _items(pack, coco, never).values()
    training += [videos[name] for split in ("train", "val") for name in official[split] if name in videos]
    measured = {
        "flickr8k-dev": [item for name, item in pictures.items() if name in flickr["dev"]],
        "coco-held-out": [item for name, item in first.items() if name in kept],
        "msvd-test": [videos[name] for name in official["test"] if name in videos],
        "msrvtt-240": _items(packs / "msrvtt.npz", _read(data / "msrvtt" / "captions.json")).values(),
    }
    return Material(tuple(training), {name: tuple(items) for name, items in measured.items()})


def held_out(names: Sequence[str], count: int = HELD_OUT) -> list[str]:
    """Return the same names in any run, spread at random.

    >>> held_out(["a", "b", "c"], 2) == held_out(["c", "b", "a"], 2)
    True
    """
    return sorted(names, key=lambda name: hashlib.md5(f"hold{name}".encode()).hexdigest())[:count]  # noqa: S324


def translations(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return English texts with their translations, by language, of files `LANGUAGE.tsv` with two columns."""
    return {
        file.stem: [
            (english, other)
            for english, other in (line.split("\t") for line in file.read_text("utf-8").splitlines())
        ]
        for file in sorted(folder.glob("*.tsv"))
    }


def sentences(data: Path) -> list[str]:
    """Return the English sentences without pictures."""
    files = sorted((data / "text").glob("*.txt.gz"))
    return [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def _items(pack: Path, captions: Mapping[str, Sequence[str]], never: Collection[str] = ()) -> dict[str, Item]:
    """The captioned items of a pack, less those that are never to be used; none where there is no pack."""
    if not pack.exists():
        return {}
    with np.load(pack) as held:
        ids, rows = held["ids"].tolist(), held["rows"].astype(np.float32)
    groups: dict[str, list[int]] = {}
    for number, name in enumerate(ids):
        groups.setdefault(name, []).append(number)
    return {
        n: Item(rows[at], tuple(captions[n]))
        for n, at in groups.items()
        if captions.get(n) and n not in never
    }


def _by_stem(captions: dict[str, list[str]]) -> dict[str, list[str]]:
    return {Path(name).stem: said for name, said in captions.items()}


def _read(path: Path) -> Any:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file)
