"""One broken invariant of a library, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.catalogue.connection import REPAIR
from wordreel.errors import NextStep


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
        if self.repairable:
            return REPAIR
        if self.kind == "gone":
            text = "add the folder where they are now, then remove those that are really gone"
            return NextStep(text, "add FOLDER && wordreel remove --missing", "Library")
        if self.kind == "absent":
            return NextStep("plug in the disk, or add the folder where it is now", "add FOLDER", "Library")
        if self.kind == "changed":
            return NextStep("bring the library up to date", "add FOLDER", "Library")
        if self.kind == "degenerate":
            return NextStep("check the weights of the experts and the embeddings", "doctor")
        if self.kind == "embeddings":
            return NextStep("check the model's weights, then embed the library again", "reindex")
        if self.kind == "database":
            return NextStep("restore the library from a backup, or delete its folder and add again")
        return None
