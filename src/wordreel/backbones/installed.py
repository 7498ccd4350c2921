"""CLIP-like models on this machine: plan an installation, install, list, open and remove them.

A source is a name of `NAMED`, a hub id (`OWNER/NAME` or `OWNER/NAME@REVISION`), or a folder or file on this
machine. ONNX files in a layout of `backbones.layout` are taken as they are, run once, and renamed into the
store as a whole; a refused source leaves the store as it was. Other files need an exporter, which writes such
a layout: `wordreel.lab` has one.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.backbones.backbone import CONFIG, Backbone
from wordreel.backbones.config import NAMED, BackboneConfig, NamedBackbone
from wordreel.backbones.layout import (
    Layout,
    choose_files,
    files_in,
    find_layout,
    published_precisions,
    read_family,
    read_head,
    read_text_settings,
    read_transform,
)
from wordreel.backbones.tokenizer import TextTokenizer
from wordreel.backbones.tower import Tower, transform_images
from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime.hub_download import HUB_ID, HubSnapshot, download_model, find_model, split_hub_id
from wordreel.runtime.sessions import Precision
from wordreel.runtime.store import MANIFEST, WeightStore
from wordreel.runtime.weight_folders import (
    check_space,
    remove_folder,
    replace_folder,
    staging_folder,
    writing,
)
from wordreel.types import Float32
from wordreel.util.checksum import file_sha256

__all__ = [
    "NAMED", "InstallPlan", "InstalledBackbone", "NamedBackbone", "Precision",
    "install", "installed", "is_backbone", "open_backbone", "plan", "remove",
]  # fmt: skip

FOLDER = "backbones"
DOWNLOADS = ".downloads"  # what was downloaded and is not yet installed
ABANDONED = 7 * 24 * 3600.0  # seconds after which nobody comes back for a download
GENERIC = ("pytorch_model", "best")  # beginnings of names that say nothing: their folder's is taken
READ = (".json", ".safetensors", ".pt", ".pth", ".bin")  # ends of the files that an exporter reads

Exporter = Callable[[Path, Path], None]
"""(a model in another layout, an empty folder) → ONNX files in the folder."""


@dataclass(frozen=True)
class InstalledBackbone:
    """A backbone in the store.

    `files` maps the source's files to their sha256, `outputs` those of the store. `source` is a hub id or a
    path, `revision` the commit of the hub, `bytes` the size on disk.
    """

    name: str
    config: BackboneConfig
    licence: str
    source: str
    revision: str = ""
    precision: Precision = "fp32"
    files: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
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
        """Return how much is to download."""
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
    """Return whether a source names a backbone; a local one is a folder of ONNX files.

    >>> is_backbone(WeightStore(Path("/nowhere")), "Xenova/clip-vit-base-patch32")
    True
    """
    if source in NAMED or source in installed(store):
        return True
    path = Path(source).expanduser()
    if path.exists():
        return path.is_dir() and bool(published_precisions(files_in(path)))
    return HUB_ID.fullmatch(source) is not None


def plan(store: WeightStore, source: str, precision: Precision = "fp32") -> InstallPlan:
    """Return what installing a source would do. Asks the hub about files of a model that is not installed."""
    here = installed(store)
    if known := here.get(source):
        if precision in ("fp32", known.precision):  # a name with its precision says which
            return _already(known)
        source = f"{known.source}@{known.revision}" if known.revision else known.source
    path = Path(source).expanduser()
    named = NAMED.get(source)
    if named is None and path.exists():
        return _plan_local(here, path.resolve(), precision)
    hub_id, revision = (named.hub, named.revision) if named else split_hub_id(source)
    named = named or next((entry for entry in NAMED.values() if entry.hub == hub_id), None)
    name = _name(named.name if named else hub_id.partition("/")[2], precision)
    if (known := here.get(name)) and known.source == hub_id and revision in ("", known.revision):
        return _already(known)
    _check_free(here, name, hub_id)
    model = find_model(hub_id, revision, choose=lambda names: choose_files(hub_id, names, precision))
    files = tuple((file.name, file.bytes) for file in model.files if not file.cached)
    licence = named.licence if named else model.licence or "see the publisher"
    return InstallPlan(name, hub_id, files, licence, precision=precision, model=model)


def install(
    store: WeightStore,
    plan: InstallPlan,
    on_progress: ProgressCallback | None = None,
    export: Exporter | None = None,
) -> str:
    """Download, check and store a backbone; return its name.

    Args:
        store: Where it goes.
        plan: What `plan` returned.
        on_progress: Called with the progress of downloads.
        export: Makes ONNX files of a local source that has none; None refuses it.

    Raises:
        WeightsError: The source is not a supported model, or damaged; the store is as it was.
    """
    if plan.installed:
        return plan.name
    root = store.root / FOLDER
    if plan.model is None:
        _install(root, plan, Path(plan.source), on_progress, export)
        return plan.name
    downloads = root / DOWNLOADS / f"{plan.source.replace('/', '--')}@{plan.revision}"
    with writing(root):
        for left in (root / DOWNLOADS).glob("*"):
            if left != downloads and time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        download_model(plan.model, downloads, on_progress)
    try:
        _install(root, plan, downloads, on_progress, None)
    except WeightsError:
        shutil.rmtree(downloads, ignore_errors=True)
        raise
    shutil.rmtree(downloads, ignore_errors=True)
    return plan.name


def _install(
    root: Path, plan: InstallPlan, source: Path, on_progress: ProgressCallback | None, export: Exporter | None
) -> None:

    stage = f"installing {plan.name}"
    if on_progress:
        on_progress(Progress(stage, 0, 1))
    with staging_folder(root, plan.name) as staging:
        files, exported, out = _source_hashes(source), staging / "exported", staging / "out"
        if source.is_file() or find_layout(files_in(source), plan.precision) is None:
            if export is None or plan.precision != "fp32":
                raise WeightsError(f"{source} has no ONNX files in {plan.precision}")
            exported.mkdir()
            export(source, exported)
            source = exported
        out.mkdir()
        facts = copy_backbone(source, out, plan.name, plan.precision)
        manifest = {
            "source": plan.source, "revision": plan.revision, "licence": plan.licence, "files": files,
            **facts,
        }  # fmt: skip
        (out / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        replace_folder(out, root / plan.name)
    if on_progress:
        on_progress(Progress(stage, 1, 1))


def installed(store: WeightStore) -> dict[str, InstalledBackbone]:
    """Return the installed backbones by name; folders that cannot be read are left out."""
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
    return Backbone(folder, known.fingerprint, known.outputs, known.precision)


def remove(store: WeightStore, name: str) -> int:
    """Delete an installed backbone; return the bytes freed."""
    if not _is_name(name):
        raise WeightsMissing(f"{name!r} is not installed", NextStep("list all weights", "weights"))
    return remove_folder(store.root / FOLDER, name)


def local_name(path: Path) -> str:
    """Return what a local file or folder is called: after its folder where its own name says nothing.

    >>> local_name(Path("/ckpt_msvd/pytorch_model.bin.4"))
    'ckpt_msvd'
    """
    if path.name.startswith(GENERIC) and path.parent.name:
        return path.parent.name
    return path.name if path.is_dir() else path.stem


def _plan_local(here: Mapping[str, InstalledBackbone], path: Path, precision: Precision) -> InstallPlan:
    name = _name(local_name(path), precision)
    _check_free(here, name, str(path))
    known = here.get(name)
    if known and known.precision == precision and dict(known.files) == _source_hashes(path):
        return _already(known)
    published = published_precisions(files_in(path)) if path.is_dir() else []
    if published and precision not in published:
        raise WeightsError(f"{path} holds {' and '.join(published)}, not {precision}")
    return InstallPlan(name, str(path), (), "see the publisher", precision=precision)


def _source_hashes(path: Path) -> dict[str, str]:
    """Return the sha256 of the files that are read."""
    if path.is_file():
        return {path.name: file_sha256(path)}
    names = files_in(path)
    layouts = [find_layout(names, precision) for precision in ("fp32", "fp16", "int8")]
    wanted = {name for layout in layouts if layout for name in layout.files}
    if not wanted:
        found = [path / name for name in names] + sorted((path / "best").glob("*"))
        wanted = {file.relative_to(path).as_posix() for file in found if file.name.endswith(READ)}
    return {name: file_sha256(path / name) for name in sorted(wanted)}


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
        names = ("licence", "source", "revision", "precision", "files", "outputs", "fingerprint")
        return InstalledBackbone(
            folder.name, config, **{name: facts[name] for name in names}, bytes=_size(folder)
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsCorrupt(
            f"the backbone {folder.name!r} is damaged or was installed by another version "
            f"({type(error).__name__}: {error})",
            NextStep("remove it and install it again", f"weights remove {folder.name}"),
        ) from None


def _name(text: str, precision: Precision) -> str:
    """Return a name for the store.

    >>> _name("ViT-B-32 (mine)", "int8")
    'vit-b-32-mine-int8'
    """
    name = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")[:80] or "backbone"
    return name if precision == "fp32" else f"{name}-{precision}"


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) is not None


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


VERSION = 2  # part of the fingerprint: raise it when the same files give other embeddings
TEXTS = ("a cat", "two dogs run")


def copy_backbone(source: Path, out: Path, name: str, precision: Precision) -> dict[str, Any]:
    """Copy a model's files into the folder `out`, and write down what runs them.

    Returns:
        What the manifest says of them: precision, the sha256 of each file, fingerprint.

    Raises:
        WeightsError: The files are not those of a model that can be run.
    """
    layout = find_layout(files_in(source), precision)
    if layout is None:
        raise WeightsError(f"{source} holds no ONNX files of a CLIP-like model")
    needed = sum((source / file).stat().st_size for file in layout.files)
    check_space(out, needed, "the model has")
    for file in layout.files:
        (out / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / file, out / file)
    config = _described(out, layout, name)
    (out / CONFIG).write_text(json.dumps(config.to_json(), indent=1), encoding="utf-8")
    outputs = {file: file_sha256(out / file) for file in (*layout.files, CONFIG)}
    networks = sorted((file, digest) for file, digest in outputs.items() if file != CONFIG)
    facts = [VERSION, {**config.to_json(), "name": ""}, networks]
    return {
        "precision": precision,
        "outputs": outputs,
        "fingerprint": hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16],
    }


def _described(folder: Path, layout: Layout, name: str) -> BackboneConfig:
    """Return the configuration of a model, whose networks have been run."""
    transform = read_transform(folder, layout)
    image, text = Tower(folder / layout.vision), Tower(folder / layout.text)
    settings = read_text_settings(folder, layout, text.length, text.masked)
    pictures = np.zeros((2, transform.size, transform.size, 3), np.uint8)
    pictures[1, : transform.size // 2] = 255
    tokenizer = TextTokenizer((folder / layout.tokenizer).read_text(encoding="utf-8"), settings)
    try:
        rows = {
            "image": image.pictures(transform_images(pictures, transform)),
            "text": text.texts(*tokenizer.encode(TEXTS)),
        }
    except Exception as error:  # onnxruntime's errors share no class
        raise WeightsError(f"{name} cannot be run: {str(error)[:200]}") from None
    for tower, vectors in rows.items():
        _check_vectors(vectors, tower, name)
    dims = {tower: vectors.shape[1] for tower, vectors in rows.items()}
    head = read_head(folder, layout, dims["text"])
    if head is None and dims["image"] != dims["text"]:
        raise WeightsError(
            f"{name} gives pictures {dims['image']} numbers and texts {dims['text']}: they share no space",
            NextStep("take files exported with the projections"),
        )
    return BackboneConfig(name, read_family(folder, layout), dims["image"], transform, settings, head)


def _check_vectors(vectors: Float32, tower: str, name: str) -> None:
    usable = vectors.ndim == 2 and bool(np.isfinite(vectors).all())
    if not usable or np.allclose(vectors[0], vectors[1], rtol=1e-6):
        raise WeightsError(
            f"the {tower} tower of {name} gives no usable embeddings",
            NextStep("check that the weights are trained ones"),
        )
