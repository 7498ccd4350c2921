"""Pairs from a published feature tree: the folder layouts of CE, TeachText, MMT and MoEE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import TrainingError
from wordreel.lab.datasets.split_builder import apply_rule
from wordreel.lab.datasets.trees import Tree
from wordreel.lab.datasets.types import Caption, Split
from wordreel.lab.training.data.packed import pack_rows
from wordreel.lab.training.data.pairs import Pairs
from wordreel.types import Absent, Array, Track


def from_tree(
    tree: Tree, split: str, experts: Sequence[str], *, words: str = "", rule: str = "all", limit: int = 0
) -> Pairs:
    """Return training pairs from one split of a tree.

    `words` names precomputed word features, an array per caption; without, captions are text. The rule
    "paragraph" concatenates the captions (or word features) of a video. Videos without a caption, or without
    features of any of the experts, are left out and counted in `Pairs.missing`.
    """
    tree = tree.for_split(split)
    items = tree.split(split)
    captions, vectors = _captions(tree, items, words, rule, limit)
    ids = [item.id for item in items.items if captions.get(item.id)]
    known = [expert for expert in experts if expert in tree.experts]
    if not known:
        raise TrainingError(
            f"{tree.root} has none of the experts {', '.join(experts)}; it has {', '.join(tree.experts)}"
        )
    tracks = {expert: [tree.read(expert, item) for item in ids] for expert in known}
    present = [n for n in range(len(ids)) if any(isinstance(tracks[expert][n], Track) for expert in known)]
    rows = {expert: pack_rows([_rows(tracks[expert][n]) for n in present]) for expert in known}
    return Pairs(
        f"{tree.dataset} {split}",
        tuple(ids[n] for n in present),
        rows,
        tuple(captions[ids[n]] for n in present),
        tuple(vectors[ids[n]] for n in present) if words else None,
        missing=len(items.items) - len(present),
    )


def _captions(
    tree: Tree, split: Split, words: str, rule: str, limit: int
) -> tuple[dict[str, tuple[Caption, ...]], dict[str, tuple[NDArray[Any], ...]]]:
    if not words:
        chosen = apply_rule(split, rule, limit or None)
        return {
            item.id: tuple(caption for caption in item.captions if caption.text.strip())
            for item in chosen.items
        }, {}
    if not tree.word_feature_names:
        raise TrainingError(f"{tree.root} is a {tree.kind} tree without word features")
    captions: dict[str, tuple[Caption, ...]] = {}
    vectors: dict[str, tuple[NDArray[Any], ...]] = {}
    only = tree.caption_index(split.name)
    for item in split.items:
        features = list(tree.word_features(words, item.id))
        if item.id in only:  # a split of one caption per video: the features of that one
            features = features[only[item.id] : only[item.id] + 1]
        features = [rows for rows in features[: limit or None] if rows.size]
        if rule == "one":
            features = features[:1]
        elif rule == "paragraph" and features:
            features = [np.concatenate(features)]
        same = len(item.captions) == len(features)
        sentences = item.captions if same else tuple(Caption("") for _ in features)
        if rule == "paragraph" and features:
            sentences = (Caption(" ".join(caption.text for caption in item.captions)),)
        captions[item.id], vectors[item.id] = tuple(sentences), tuple(features)
    return captions, vectors


def _rows(value: Track | Absent) -> tuple[Array, Array] | None:
    return (value.values, _middles(value)) if isinstance(value, Track) else None


def _middles(track: Track) -> NDArray[Any]:
    """Return the middle of each row in seconds; negative times mean unknown."""
    middles = track.times.mean(axis=1)
    return np.where(middles < 0, np.nan, middles)
