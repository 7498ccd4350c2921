"""What the default model is trained on: tokens of every captioned item, and the captions themselves.

Items come from libraries whose experts have seen them; pictures are videos of one frame. Everything fits into
one file, so that training can run on a machine that has neither the libraries nor the media.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.atomic import atomic_write
from wordreel.errors import DatasetError
from wordreel.library.store import LibraryStore
from wordreel.models.reel.checkpoint import from_small, to_small
from wordreel.models.reel.shape import SEEN
from wordreel.models.reel.stretches import stretches
from wordreel.types import Float32, Int64, Track

SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class Source:
    """Captioned items of one library, by split."""

    name: str
    library: Path
    captions: Mapping[str, Mapping[str, Sequence[str]]]  # split → id → sentences


@dataclass(frozen=True, eq=False)
class Material:
    """`tokens[expert] [items, most, dim]`, `counts[expert] [items]`; captions with their item."""

    tokens: dict[str, Float32]
    counts: dict[str, Int64]
    source: Int64  # [items], place in `names`
    split: Int64  # [items], place in SPLITS
    texts: tuple[str, ...]
    owner: Int64  # [texts]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.source)

    @property
    def digest(self) -> str:
        seen = hashlib.sha256("\n".join(self.texts).encode())
        for name in sorted(self.tokens):
            seen.update(np.ascontiguousarray(self.tokens[name]).tobytes())
        return seen.hexdigest()


def gather(sources: Sequence[Source]) -> Material:
    """Read every captioned item of every source; ids are file names, with or without their ending."""
    tokens: dict[str, list[Float32]] = {seen.name: [] for seen in SEEN}
    counts: dict[str, list[int]] = {seen.name: [] for seen in SEEN}
    where: list[int] = []
    splits: list[int] = []
    texts: list[str] = []
    owner: list[int] = []
    for number, source in enumerate(sources):
        wanted = {
            item: (split, said) for split, items in source.captions.items() for item, said in items.items()
        }
        with LibraryStore.open(source.library) as store:
            for file in store.files():
                path = Path(file.path)
                name = path.name if path.name in wanted else path.stem
                split, sentences = wanted.pop(name, ("", ()))
                said = list(dict.fromkeys(clean for text in sentences if (clean := " ".join(text.split()))))
                if not said:
                    continue
                for seen in SEEN:
                    track = store.track(file.content, seen.name)
                    rows = stretches(track, None, seen.most) if isinstance(track, Track) else None
                    held = np.zeros((seen.most, seen.dim), np.float32)
                    if rows is not None:
                        held[: len(rows)] = rows
                    tokens[seen.name].append(held)
                    counts[seen.name].append(0 if rows is None else len(rows))
                owner += [len(where)] * len(said)
                texts += said
                where.append(number)
                splits.append(SPLITS.index(split))
    if not where:
        raise DatasetError(
            "none of the captioned ids is a file name in these libraries; `wordreel list` shows them"
        )
    return Material(
        {name: np.stack(rows) for name, rows in tokens.items()},
        {name: np.array(rows, np.int64) for name, rows in counts.items()},
        np.array(where, np.int64),
        np.array(splits, np.int64),
        tuple(texts),
        np.array(owner, np.int64),
        tuple(source.name for source in sources),
    )


def save(path: Path, material: Material) -> None:
    """One safetensors file; tokens as bytes with a scale each, absent ones left out."""
    from safetensors.numpy import save as to_bytes

    arrays: dict[str, np.ndarray[Any, Any]] = {
        "source": material.source.astype(np.int8),
        "split": material.split.astype(np.int8),
        "owner": material.owner.astype(np.int32),
        "texts": np.frombuffer("\n".join(material.texts).encode(), np.uint8).copy(),
    }
    for name, tokens in material.tokens.items():
        there = np.arange(tokens.shape[1]) < material.counts[name][:, None]
        arrays[f"{name}.tokens"], arrays[f"{name}.scales"] = to_small(tokens[there])
        arrays[f"{name}.counts"] = material.counts[name].astype(np.int8)
    atomic_write(path, to_bytes(arrays, metadata={"names": json.dumps(material.names)}))


def load(path: Path) -> Material:
    """Read what `save` wrote."""
    from safetensors import safe_open

    with safe_open(str(path), framework="numpy") as file:
        names = json.loads((file.metadata() or {})["names"])
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    tokens, counts = {}, {}
    for seen in SEEN:
        counts[seen.name] = held[f"{seen.name}.counts"].astype(np.int64)
        tokens[seen.name] = np.zeros((len(counts[seen.name]), seen.most, seen.dim), np.float32)
        there = np.arange(seen.most) < counts[seen.name][:, None]
        tokens[seen.name][there] = from_small(held[f"{seen.name}.tokens"], held[f"{seen.name}.scales"])
    return Material(
        tokens,
        counts,
        held["source"].astype(np.int64),
        held["split"].astype(np.int64),
        tuple(held["texts"].tobytes().decode().split("\n")),
        held["owner"].astype(np.int64),
        tuple(names),
    )
