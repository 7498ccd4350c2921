"""Opening a feature tree: detect which published layout a folder has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.trees.ce import FOLDER, is_pickled_tree, open_ce
from wordreel.lab.datasets.trees.clip4clip import detect_dataset, open_clip4clip
from wordreel.lab.datasets.trees.mmt import H5_FOLDER, is_mmt_tree, open_mmt
from wordreel.lab.datasets.trees.moee import datasets_in, open_moee
from wordreel.lab.datasets.trees.teachtext import HIGH_QUALITY, open_teachtext
from wordreel.lab.datasets.trees.tree import Tree

OPENERS: dict[str, Callable[[Path, str | None], Tree]] = {
    "ce": open_ce,
    "teachtext": open_teachtext,
    "mmt": open_mmt,
    "moee": open_moee,
}
KINDS = (*OPENERS, "clip4clip")


def open_tree(
    folder: str | Path, kind: str | None = None, dataset: str | None = None, videos: str | Path | None = None
) -> Tree:
    """Open the features and captions in a dataset's folder.

    Args:
        folder: The dataset's folder, as the published code lays it out.
        kind: The layout, one of `KINDS`; None or "auto" detects it.
        dataset: The dataset's name; None takes it from the names of folders and files.
        videos: Where CLIP4Clip's videos are; None looks below `folder`.

    Returns:
        The tree. Only file names have been read.

    Raises:
        DatasetError: The folder does not exist, or has no known layout, or more than one.

    >>> import pickle, tempfile
    >>> root = Path(tempfile.mkdtemp()) / "MSVD" / "structured-symlinks"
    >>> (root / "aggregated_face_feats").mkdir(parents=True)
    >>> _ = (root / "aggregated_face_feats" / "face-avg.pickle").write_bytes(pickle.dumps({"vid1": [0.5, 1]}))
    >>> tree = open_tree(root.parent)
    >>> tree.kind, tree.dataset, tree.experts
    ('ce', 'MSVD', ('face',))
    >>> tree.read("face", "vid1").values
    array([[0.5, 1. ]], dtype=float32)
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DatasetError(f"there is no folder {root}")
    chosen = kind if kind and kind != "auto" else detect_layout(root)
    if chosen == "clip4clip":
        return open_clip4clip(root, dataset, Path(videos).expanduser() if videos else None)
    if chosen not in OPENERS:
        raise DatasetError(f"unknown layout {chosen!r}", NextStep(f"choose one of {', '.join(KINDS)}"))
    return OPENERS[chosen](root, dataset)


def detect_layout(root: Path) -> str:
    """Return the layout of a folder.

    Raises:
        DatasetError: No layout fits, or more than one does.
    """
    better = is_pickled_tree(root / HIGH_QUALITY / FOLDER) or is_pickled_tree(root / HIGH_QUALITY)
    inside = HIGH_QUALITY in root.resolve().parts
    plain = is_pickled_tree(root / FOLDER) or is_pickled_tree(root)
    matches = {
        "teachtext": better or (plain and (inside or _has_teachers(root))),
        "ce": plain and not (inside or _has_teachers(root)),
        "mmt": is_mmt_tree(root / H5_FOLDER) or is_mmt_tree(root),
        "moee": any(datasets_in(path) for path in (root, root / "data", root / "data" / "data")),
    }
    kinds = [kind for kind, matched in matches.items() if matched]
    if not kinds and detect_dataset(root):  # lists and captions alone; the others have them beside features
        kinds = ["clip4clip"]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise DatasetError(
            f"{root} holds the layouts {' and '.join(kinds)}", NextStep("choose one with --kind")
        )
    raise DatasetError(
        f"{root} has no known layout: it should be a dataset's folder of Collaborative Experts, TeachText, "
        "MMT, CLIP4Clip or MoEE",
        NextStep("name the layout with --kind to see which files are missing"),
    )


def _has_teachers(root: Path) -> bool:
    return any((path / "teachers").is_dir() for path in (root, root / FOLDER))
