"""Pairs from the folders that published retrieval code keeps its features in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.datasets import caption_rules
from wordreel.datasets.trees import Tree
from wordreel.datasets.types import Caption, Split
from wordreel.errors import TrainingError
from wordreel.training.data.packed import Packed, pack
from wordreel.training.data.pairs import Pairs
from wordreel.types import Float32, Track


def from_tree(
    tree: Tree,
    split: str,
    experts: Sequence[str],
    *,
    words: str = "",
    rule: str = "all",
    limit: int = 0,
    share: float = 1.0,
) -> Pairs:
    """One split of a tree. `words` names ready word features, an array per caption; else captions are text.

    With the rule "paragraph" the captions (or word features) of a video are put end to end. Videos without a
    caption, or without a row of any of the experts, are left out and counted.
    """
    tree = tree.for_split(split)
    found = tree.split(split)
    told, vectors = _captions(tree, found, words, rule, limit)
    ids = [item.id for item in found.items if told.get(item.id)]
    known = [expert for expert in experts if expert in tree.experts]
    if not known:
        raise TrainingError(
            f"{tree.root} has none of the experts {', '.join(experts)}; it has {', '.join(tree.experts)}"
        )
    tracks = {expert: [tree.read(expert, item) for item in ids] for expert in known}
    some = [any(isinstance(tracks[expert][n], Track) for expert in known) for n in range(len(ids))]
    kept = [n for n, here in enumerate(some) if here]
    rows = {expert: _packed([tracks[expert][n] for n in kept]) for expert in known}
    return Pairs(
        f"{tree.dataset} {split}",
        tuple(ids[n] for n in kept),
        rows,
        tuple(told[ids[n]] for n in kept),
        tuple(vectors[ids[n]] for n in kept) if words else None,
        shares=(share,),
        missing=len(found.items) - len(kept),
    )


def _captions(
    tree: Tree, split: Split, words: str, rule: str, limit: int
) -> tuple[dict[str, tuple[Caption, ...]], dict[str, tuple[NDArray[Any], ...]]]:
    if not words:
        chosen = caption_rules.apply_rule(split, rule, limit or None)
        return {
            item.id: tuple(caption for caption in item.captions if caption.text.strip())
            for item in chosen.items
        }, {}
    if not tree.word_feature_names:
        raise TrainingError(f"{tree.root} is a {tree.kind} tree without word features")
    told: dict[str, tuple[Caption, ...]] = {}
    vectors: dict[str, tuple[NDArray[Any], ...]] = {}
    only = tree.caption_index(split.name)
    for item in split.items:
        every = tree.word_features(words, item.id)
        if item.id in only:  # a split of one caption per video: the features of that one
            every = every[only[item.id] : only[item.id] + 1]
        made = [rows for rows in every[: limit or None] if rows.size]
        if rule == "one":
            made = made[:1]
        elif rule == "paragraph" and made:
            made = [np.concatenate(made)]
        same = len(item.captions) == len(made)
        sentences = item.captions if same else tuple(Caption("") for _ in made)
        if rule == "paragraph" and made:
            sentences = (Caption(" ".join(caption.text for caption in item.captions)),)
        told[item.id], vectors[item.id] = tuple(sentences), tuple(made)
    return told, vectors


def _packed(found: Sequence[object]) -> Packed:
    tracks = [track if isinstance(track, Track) else None for track in found]
    dim = next((track.dim for track in tracks if track is not None), 1)
    empty: Float32 = np.zeros((0, dim), np.float32)
    return pack(
        [empty if track is None else track.values for track in tracks],
        [empty[:, 0] if track is None else _middles(track) for track in tracks],
        empty,
    )


def _middles(track: Track) -> NDArray[Any]:
    """Times before the beginning are unknown ones."""
    middles = track.times.mean(axis=1)
    return np.where(middles < 0, np.nan, middles)
