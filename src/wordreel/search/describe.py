"""Everything known about one file, as plain values for printing or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.catalogue.records import TrackRow
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep
from wordreel.experts import registry
from wordreel.experts.clip import eyes_of
from wordreel.models.joint.model import EYES, Joint
from wordreel.runtime.store import WeightStore
from wordreel.types import Track

STRONGEST = 3  # labels per expert


def describe(store: LibraryStore, path: Path, weights: WeightStore) -> dict[str, Any]:
    """Return the facts, expert results, clips, captions and words of one file."""
    file = store.file(path)
    video = store.video(file.content) if file else None
    if file is None or video is None:
        failed = [failure for failure in store.failures() if Path(failure.path) == path.absolute()]
        if failed:
            raise LibraryError(f"{path} is not in the library: it could not be added ({failed[0].reason})")
        step = NextStep("add it", f"add {path}", "Library")
        raise LibraryError(f"{path} is not in the library", step)
    return {
        "path": file.path,
        "content": file.content,
        "info": asdict(video.info),
        "paths": list(video.paths),
        "captured": file.captured,
        "captured_from": file.captured_from,
        "analysis": video.analysis,
        "experts": [_expert(store, row, weights) for row in store.tracks(file.content)],
        "clips": [{"start": c.start, "end": c.end, "whole": c.whole} for c in store.clips(file.content)],
        "captions": [
            {"dataset": c.dataset, "split": c.split, "text": c.text, "start": c.start, "end": c.end}
            for c in store.captions(content=file.content)
        ],
        "words": [
            {"expert": w.expert, "start": w.start, "end": w.end, "text": w.text}
            for w in store.words(file.content)
        ],
    }


def _expert(store: LibraryStore, row: TrackRow, weights: WeightStore) -> dict[str, Any]:
    track = store.track(row.content, row.expert)
    labels = _labels(row.expert, track, weights) if isinstance(track, Track) else []
    facts = {"name": row.expert, "rows": row.rows, "dim": row.dim, "reason": row.reason, "labels": labels}
    return facts | ({"eyes": eyes_of(row.fingerprint)} if row.expert == EYES else {})


def _labels(expert: str, track: Track, weights: WeightStore) -> Sequence[str]:
    """Return what stands out of a whole track: concepts, or the classes of an expert that has some."""
    if expert == EYES:
        return Joint(weights).standing_out(track)[:STRONGEST]
    if expert not in registry.RECOGNISING:
        return []
    labels = registry.recogniser(expert, weights).labels(track)
    strongest = np.argsort(-labels.scores.mean(axis=0), kind="stable")[:STRONGEST]
    return [labels.names[number] for number in strongest]
