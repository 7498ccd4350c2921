"""Problems of a library, and the repair of what a check found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.catalogue.clips import cut_clips
from wordreel.catalogue.connection import REPAIR
from wordreel.catalogue.passes import moment_spans
from wordreel.catalogue.remove import drop_tracks, drop_unreferenced
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embedding_cache import remove_cache
from wordreel.errors import NextStep
from wordreel.ingest.record_file import insert_clips

NEXT_STEPS = {
    "gone": NextStep(
        "add the folder where they are now, then remove those that are really gone",
        "add FOLDER && wordreel remove --missing",
        "Library",
    ),
    "absent": NextStep("plug in the disk, or add the folder where it is now", "add FOLDER", "Library"),
    "changed": NextStep("bring the library up to date", "add FOLDER", "Library"),
    "degenerate": NextStep("check the weights of the experts and the embeddings", "doctor"),
    "embeddings": NextStep("check the model's weights, then embed the library again", "reindex"),
    "database": NextStep("restore the library from a backup, or delete its folder and add again"),
}
"""What the user can do about a problem that is not repaired, by its kind."""


@dataclass(frozen=True)
class LibraryProblem:
    """One broken invariant. A `note` is not the library's fault: a file that moved away, say."""

    kind: str
    what: str
    repairable: bool = True
    note: bool = False
    key: tuple[str, ...] = ()  # what `repair` needs to find it again

    @property
    def next_step(self) -> NextStep | None:
        """What the user can do about it; None if there is nothing to do but look at it."""
        return REPAIR if self.repairable else NEXT_STEPS.get(self.kind)


def repair(store: LibraryStore, problems: Sequence[LibraryProblem]) -> list[LibraryProblem]:
    """Repair what can be repaired and return the other problems.

    Nothing is invented: broken tracks are dropped, and the next `wordreel add` extracts them again.
    """
    repairs: dict[str, Callable[[LibraryStore, LibraryProblem], object]] = {
        "track": _drop_track,
        "clips": _cut_again,
        "orphan": lambda s, p: drop_tracks(s.catalogue, s.track_files, p.key),
        "stray": lambda s, p: s.track_files.remove_strays(p.key),
        "unreferenced": lambda s, p: drop_unreferenced(s.catalogue, s.track_files),
        "words": lambda s, p: s.catalogue.run(f"INSERT INTO {p.key[0]} ({p.key[0]}) VALUES ('rebuild')"),  # noqa: S608
        "cache": lambda s, p: remove_cache(Path(p.key[0])),
        "unfinished": lambda s, p: remove_cache(Path(p.key[0])),
    }
    left = []
    # Broken tracks first: clips are cut from one of them.
    for problem in sorted(problems, key=lambda p: p.kind != "track"):
        fix = repairs.get(problem.kind)
        if problem.repairable and fix:
            with store.writing():
                fix(store, problem)
        else:
            left.append(problem)
    return left


def _drop_track(store: LibraryStore, problem: LibraryProblem) -> None:
    content, expert = problem.key
    with store.catalogue.transaction():
        hashes = store.catalogue.rows(
            "SELECT hash FROM tracks WHERE content = ? AND expert = ? AND hash IS NOT NULL", content, expert
        )
        store.catalogue.run("DELETE FROM tracks WHERE content = ? AND expert = ?", content, expert)
    # Where the bytes are wrong, each content that names them is a problem of its own and loses them too.
    drop_tracks(store.catalogue, store.track_files, (digest for (digest,) in hashes))


def _cut_again(store: LibraryStore, problem: LibraryProblem) -> None:
    content = problem.key[0]
    info = store.info(content)
    if info is None:
        return
    spans = moment_spans(store, content, info)
    with store.catalogue.transaction():
        insert_clips(store.catalogue, content, cut_clips(info, spans))
