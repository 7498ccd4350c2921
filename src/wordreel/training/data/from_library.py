"""Pairs from a library: stored tracks of its videos, and captions from a split, a file or the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wordreel.datasets.types import Caption, Split
from wordreel.errors import TrainingError
from wordreel.library.store import LibraryStore
from wordreel.models.collate import ExpertRows, clip_rows
from wordreel.training.data.packed import Packed, pack
from wordreel.training.data.pairs import Pairs
from wordreel.types import Clip, Float32, Track

Told = Mapping[str, Sequence[str]] | Split


def from_library(
    library: str | Path | LibraryStore,
    captions: Told | None = None,
    experts: Sequence[str] | None = None,
    *,
    split: str | None = None,
    dataset: str | None = None,
    share: float = 1.0,
) -> Pairs:
    """Every captioned video of a library, as a whole, with the rows that `experts` stored (all by default).

    `captions` are a `Split` (`wordreel.datasets.registry.read`) or ids → sentences, an id being a file's name
    with or without its ending; without, they are those that were imported with the library (`split`,
    `dataset`). Files of the same bytes are one video, which gets all their captions. `share` is how often an
    epoch shows each video.
    """
    store = library if isinstance(library, LibraryStore) else LibraryStore.open(Path(library))
    told = _imported(store, split, dataset) if captions is None else _named(store, captions)
    if not told:
        how = "`wordreel list` shows its files" if captions is not None else "give them with --captions FILE"
        raise TrainingError(f"no video of the library {store.path} has a caption; {how}")
    name = dataset or (captions.dataset if isinstance(captions, Split) else "") or store.path.name
    known = {row.expert for row in store.tracks() if row.present}
    chosen = sorted(known) if experts is None else [expert for expert in experts if expert in known]
    if not chosen:
        raise TrainingError(
            f"the library {store.path} has none of {', '.join(experts or ())}; it has "
            f"{', '.join(sorted(known)) or 'no tracks'}"
        )
    whole = {clip.content: clip.clip for clip in store.clips() if clip.whole}
    contents = [content for content in told if content in whole]
    rows: dict[str, Packed] = {}
    for expert in chosen:
        rows[expert] = _packed([_rows(store, content, expert, whole[content]) for content in contents])
    wanted = len(captions.items) if isinstance(captions, Split) else len(captions or told)
    return Pairs(
        name,
        tuple(contents),
        rows,
        tuple(tuple(told[content]) for content in contents),
        shares=(share,),
        missing=max(0, wanted - len(contents)),
    )


def _rows(store: LibraryStore, content: str, expert: str, clip: Clip) -> ExpertRows | None:
    track = store.track(content, expert)
    return clip_rows(track, clip) if isinstance(track, Track) else None


def _packed(found: Sequence[ExpertRows | None]) -> Packed:
    dim = next((rows.values.shape[1] for rows in found if rows is not None), 1)
    empty: Float32 = np.zeros((0, dim), np.float32)
    return pack(
        [empty if rows is None else rows.values for rows in found],
        [empty[:, 0] if rows is None else rows.times for rows in found],
        empty,
    )


def _named(store: LibraryStore, captions: Told) -> dict[str, list[Caption]]:
    files: dict[str, str] = {}
    for file in store.files():
        files.setdefault(Path(file.path).name, file.content)
        files.setdefault(Path(file.path).stem, file.content)
    if isinstance(captions, Split):
        items = [(item.id, item.path, list(item.captions)) for item in captions.items]
    else:
        items = [(name, None, [Caption(text) for text in texts]) for name, texts in captions.items()]
    told: dict[str, list[Caption]] = {}
    for name, path, sentences in items:
        content = files.get(name) or (files.get(Path(path).name) if path else None)
        kept = [caption for caption in sentences if caption.text.strip()]
        if content is not None and kept:
            told.setdefault(content, []).extend(kept)
    return told


def _imported(store: LibraryStore, split: str | None, dataset: str | None) -> dict[str, list[Caption]]:
    told: dict[str, list[Caption]] = {}
    for row in store.captions(split, dataset):
        if row.text.strip():
            told.setdefault(row.content, []).append(Caption(row.text, row.start, row.end))
    return told
