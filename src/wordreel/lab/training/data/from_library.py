"""Pairs from a library: stored tracks of its videos, and captions from a split, a file or the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wordreel.catalogue.captions import NamedContents
from wordreel.catalogue.passes import is_quick_track
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, TrainingError
from wordreel.lab.datasets.types import Caption, Item, Split
from wordreel.lab.models.collate import clip_rows, with_line_vectors
from wordreel.lab.training.data.packed import pack_rows
from wordreel.lab.training.data.pairs import Pairs
from wordreel.models.joint.text_tower import TextTower
from wordreel.runtime.store import WeightStore
from wordreel.types import Array, Clip, Track

NamedCaptions = Mapping[str, Sequence[str]] | Split


def from_library(
    library: str | Path | LibraryStore,
    captions: NamedCaptions | None = None,
    experts: Sequence[str] | None = None,
    *,
    split: str | None = None,
    dataset: str | None = None,
    share: float = 1.0,
) -> Pairs:
    """Return training pairs from the captioned videos of a library.

    Args:
        library: The library or its folder.
        captions: A `Split` (`wordreel.lab.datasets.registry.read`), or sentences by id, an id being a file
            name with or without its suffix. By default the captions imported with the library (`split`,
            `dataset`). Files of the same bytes are one video, which gets the captions of all of them.
        experts: The experts whose features to load; all by default. Speech and on-screen
            text have a row of the text tower for each line.
        split: Of the imported captions, those of one split.
        dataset: Of the imported captions, those of one dataset.
        share: How often an epoch draws each video.

    Raises:
        TrainingError: No video has a caption, or the library has none of the experts.
    """
    store = library if isinstance(library, LibraryStore) else LibraryStore.open(Path(library))
    if captions is not None and not isinstance(captions, Split):
        items = (Item(name, tuple(map(Caption, texts))) for name, texts in captions.items())
        captions = Split("", "", tuple(items))
    by_content = _imported(store, split, dataset) if captions is None else _named(store, captions)
    if not by_content:
        step = NextStep("compare the ids with the file names", command="list")
        if captions is None:
            step = NextStep("name a caption file", command="train … --captions FILE")
        raise TrainingError(f"no video of the library {store.path} has a caption", step)
    name = dataset or (captions.dataset if captions else "") or store.path.name
    known = {row.expert for row in store.tracks() if row.present}
    chosen = sorted(known) if experts is None else [expert for expert in experts if expert in known]
    if not chosen:
        raise TrainingError(
            f"the library {store.path} has none of {', '.join(experts or ())}; it has "
            f"{', '.join(sorted(known)) or 'no tracks'}"
        )
    whole = {clip.content: clip.clip for clip in store.clips() if clip.whole}
    # A video known by key frames alone has other features than it will have: it counts as missing.
    quick = {row.content for row in store.tracks() if is_quick_track(row.fingerprint)}
    contents = [content for content in by_content if content in whole and content not in quick]
    tower = TextTower(WeightStore().root)
    rows = {
        expert: pack_rows([_rows(store, content, expert, whole[content], tower) for content in contents])
        for expert in chosen
    }
    wanted = len(captions.items if captions else by_content)
    return Pairs(
        name,
        tuple(contents),
        rows,
        tuple(tuple(by_content[content]) for content in contents),
        shares=(share,),
        missing=max(0, wanted - len(contents)),
    )


def _rows(
    store: LibraryStore, content: str, expert: str, clip: Clip, tower: TextTower
) -> tuple[Array, Array] | None:
    track = store.track(content, expert)
    if not isinstance(track, Track):
        return None
    rows = clip_rows(with_line_vectors(expert, track, tower), clip)
    return None if rows is None else (rows.values, rows.times)


def _named(store: LibraryStore, captions: Split) -> dict[str, list[Caption]]:
    files = NamedContents.of(store.files())
    by_content: dict[str, list[Caption]] = {}
    for item in captions.items:
        content = files.find(item.id) or (files.find(item.path) if item.path else None)
        spelled = [caption for caption in item.captions if caption.text.strip()]
        if content is not None and spelled:
            by_content.setdefault(content, []).extend(spelled)
    return by_content


def _imported(store: LibraryStore, split: str | None, dataset: str | None) -> dict[str, list[Caption]]:
    by_content: dict[str, list[Caption]] = {}
    for row in store.captions(split, dataset):
        if row.text.strip():
            by_content.setdefault(row.content, []).append(Caption(row.text, row.start, row.end))
    return by_content
