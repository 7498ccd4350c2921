"""Which layout a folder has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wordreel.datasets.trees.ce import FOLDER, looks_pickled, open_ce
from wordreel.datasets.trees.clip4clip import guess_dataset, open_clip4clip
from wordreel.datasets.trees.layout import Tree
from wordreel.datasets.trees.mmt import FILES, looks_mmt, open_mmt
from wordreel.datasets.trees.moee import held, open_moee
from wordreel.datasets.trees.teachtext import HIGH_QUALITY, open_teachtext
from wordreel.errors import DatasetError

KINDS = ("ce", "teachtext", "mmt", "clip4clip", "moee")


def open_tree(
    folder: str | Path, kind: str | None = None, dataset: str | None = None, videos: str | Path | None = None
) -> Tree:
    """The tree in a folder. Without a `kind` the layout is told from what lies there.

    `dataset` is told from names of folders and files unless given; `videos` is where CLIP4Clip's videos are.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DatasetError(f"there is no folder {root}")
    chosen = kind if kind and kind != "auto" else guess(root)
    openers: dict[str, Callable[[], Tree]] = {
        "ce": lambda: open_ce(root, dataset),
        "teachtext": lambda: open_teachtext(root, dataset),
        "mmt": lambda: open_mmt(root, dataset),
        "clip4clip": lambda: open_clip4clip(root, dataset, Path(videos).expanduser() if videos else None),
        "moee": lambda: open_moee(root, dataset),
    }
    if chosen not in openers:
        raise DatasetError(f"there is no layout {chosen!r}; known are {', '.join(KINDS)}")
    return openers[chosen]()


def guess(root: Path) -> str:
    """The layout of a folder; an error where none fits or two do."""
    better = looks_pickled(root / HIGH_QUALITY / FOLDER) or looks_pickled(root / HIGH_QUALITY)
    inside = HIGH_QUALITY in root.resolve().parts
    plain = looks_pickled(root / FOLDER) or looks_pickled(root)
    fits = {
        "teachtext": better or (plain and (inside or _taught(root))),
        "ce": plain and not (inside or _taught(root)),
        "mmt": looks_mmt(root / FILES) or looks_mmt(root),
        "moee": any(held(place) for place in (root, root / "data", root / "data" / "data")),
    }
    found = [kind for kind, here in fits.items() if here]
    if not found and guess_dataset(root):  # lists and captions alone; the others have them beside features
        found = ["clip4clip"]
    if len(found) == 1:
        return found[0]
    if found:
        raise DatasetError(f"{root} holds the layouts {' and '.join(found)}; choose one with --kind")
    raise DatasetError(
        f"the layout of {root} is not known; it should be a dataset's folder of Collaborative Experts, "
        "TeachText, MMT, CLIP4Clip or MoEE. Choose one with --kind to hear what it lacks"
    )


def _taught(root: Path) -> bool:
    return any((place / "teachers").is_dir() for place in (root, root / FOLDER))
