"""Whether a model can find anything in a library at all."""

from __future__ import annotations

from wordreel.errors import NextStep, QueryError
from wordreel.library.paths import IMPORTED
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model


def check_model_fits(store: LibraryStore, model: Model) -> None:
    """Say so where all items were imported with features that the model does not know.

    Every item would be as good as any other; an order made of that would look like an answer.
    """
    foreign = store.catalogue.one(
        "SELECT count(*), sum(path >= ? AND path < ?) FROM files",
        IMPORTED.encode(),
        IMPORTED.encode() + b"\xff",
    )
    if foreign is None or not foreign[0] or foreign[0] != foreign[1]:
        return
    wanted = model.track_experts
    marks = ",".join("?" * len(wanted))
    known = store.catalogue.one(
        f"SELECT 1 FROM tracks WHERE state = 'present' AND expert IN ({marks}) LIMIT 1",  # noqa: S608
        *wanted,
    )
    if known is None:
        have = ", ".join(sorted(store.stats().experts)) or "no experts"
        raise QueryError(
            f"the model {model.name!r} looks at {', '.join(wanted)}; the {foreign[0]} items of this "
            f"library were imported with {have}",
            NextStep(
                "use a model trained on those features, or add the videos themselves",
                command="add FOLDER",
                page="Library (POST /api/folders)",
            ),
        )
