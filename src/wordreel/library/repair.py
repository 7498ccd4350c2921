"""Mend what `verify` found: nothing is invented, only dropped so that `add` makes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from wordreel.library.clips import cut
from wordreel.library.embeddings import remove_cache
from wordreel.library.remove import drop_tracks, drop_unreferenced
from wordreel.library.store import LibraryStore
from wordreel.library.study import SHOTS, shots_of
from wordreel.library.verify import Problem


def repair(store: LibraryStore, problems: Sequence[Problem]) -> list[Problem]:
    """Mend what can be mended; what is left. Dropped tracks come back with the next `wordreel add`."""
    mended: dict[str, Callable[[LibraryStore, Problem], object]] = {
        "track": _drop_track,
        "clips": _cut_again,
        "orphan": lambda s, p: drop_tracks(s.catalogue, s.track_files, p.key),
        "stray": lambda s, p: Path(p.key[0]).unlink(missing_ok=True),
        "unreferenced": lambda s, p: drop_unreferenced(s.catalogue, s.track_files),
        "words": lambda s, p: s.catalogue.run("INSERT INTO words_fts (words_fts) VALUES ('rebuild')"),
        "cache": lambda s, p: remove_cache(Path(p.key[0])),
        "unfinished": lambda s, p: remove_cache(Path(p.key[0])),
    }
    left = []
    # Broken tracks first: clips are cut from one of them.
    for problem in sorted(problems, key=lambda p: p.kind != "track"):
        mend = mended.get(problem.kind)
        if problem.repairable and mend:
            with store.writing():
                mend(store, problem)
        else:
            left.append(problem)
    return left


def _drop_track(store: LibraryStore, problem: Problem) -> None:
    content, expert = problem.key
    with store.catalogue.transaction():
        hashes = store.catalogue.rows(
            "SELECT hash FROM tracks WHERE content = ? AND expert = ? AND hash IS NOT NULL", content, expert
        )
        store.catalogue.run("DELETE FROM tracks WHERE content = ? AND expert = ?", content, expert)
    # Where the bytes are wrong, each content that names them is a problem of its own and loses them too.
    drop_tracks(store.catalogue, store.track_files, (digest for (digest,) in hashes))


def _cut_again(store: LibraryStore, problem: Problem) -> None:
    content = problem.key[0]
    info = store.info(content)
    if info is None:
        return
    track = store.track(content, SHOTS)
    with store.catalogue.transaction():
        store.catalogue.run("DELETE FROM clips WHERE content = ?", content)
        store.catalogue.run_many(
            "INSERT INTO clips (content, start, end, whole, shot) VALUES (?, ?, ?, ?, ?)",
            [
                (content, c.start, c.end, int(c.whole), c.shot)
                for c in cut(info, shots_of(track, info.duration))
            ],
        )
