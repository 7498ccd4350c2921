"""CLIP-like models on this machine: plan an installation, install, list, open and remove them.

A source is a name of `NAMED`, a hub id (`OWNER/NAME` or `OWNER/NAME@REVISION`), a folder as the hub holds it,
or a checkpoint file. It is read without executing anything, checked against the network it claims to be,
converted once, run once, and renamed into the store as a whole; a refused source leaves the store as it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.nets.clip.backbone import CONFIG, HEAD_FILE, TOKENIZER, Backbone
from wordreel.nets.clip.config import BackboneConfig
from wordreel.nets.clip.frame_head import HEAD
from wordreel.nets.clip.read_backbone import find_training, local_name, read_backbone
from wordreel.nets.clip.read_clip4clip import NotSearchable
from wordreel.nets.runtime import Precision
from wordreel.progress import Progress, ProgressCallback
from wordreel.weights.archive import file_sha256
from wordreel.weights.hub_download import (
    HUB_ID,
    SMALL_FILES,
    SPARE_BYTES,
    HubModel,
    download_model,
    find_model,
    split_hub_id,
)
from wordreel.weights.named_backbones import NAMED, RECOMMENDED, NamedBackbone
from wordreel.weights.store import MANIFEST, WeightStore, replace_folder, staging_folder

__all__ = [
    "NAMED", "RECOMMENDED", "InstallPlan", "InstalledBackbone", "NamedBackbone", "Precision",
    "install", "installed", "is_backbone", "open_backbone", "plan", "remove",
]  # fmt: skip

CONVERTER_VERSION = 1
FOLDER = "backbones"
WEIGHT_SUFFIXES = (".safetensors", ".pt", ".pth", ".bin")


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
    model: HubModel | None = None

    @property
    def download_bytes(self) -> int:
        return sum(size for _, size in self.files)

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
    path = Path(source).expanduser()
    if path.is_dir():
        described = (path / "open_clip_config.json").is_file() or find_training(path) is not None
        return described or "model_type" in _json_object(path / "config.json")
    if path.is_file():
        return _is_weight_file(path.name) and _holds_towers(path)
    return HUB_ID.fullmatch(source) is not None


def plan(store: WeightStore, source: str, precision: Precision = "fp32") -> InstallPlan:
    """What installing a source would do. Asks the hub about files of a model that is not installed."""
    here = installed(store)
    if source in here:
        return _already(here[source])
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
    model = find_model(hub_id, revision)
    files = tuple((file.name, file.bytes) for file in model.files if not file.cached)
    licence = named.licence if named else model.licence or "see the publisher"
    return InstallPlan(name, hub_id, files, licence, precision=precision, model=model)


def install(store: WeightStore, plan: InstallPlan, on_progress: ProgressCallback | None = None) -> str:
    """Download, check, convert and store a backbone; returns its name.

    Raises:
        WeightsError: The source is not a supported model, or damaged; the store is as it was.
    """
    if plan.installed:
        return plan.name
    source = download_model(plan.model, on_progress) if plan.model else Path(plan.source)
    if on_progress:
        on_progress(Progress(f"converting {plan.name}", 0, 1))
    root = store.root / FOLDER
    with staging_folder(root, plan.name) as staging:
        out = staging / "out"
        out.mkdir()
        _convert(store, source, plan, out)
        replace_folder(out, root / plan.name)
    if on_progress:
        on_progress(Progress(f"converting {plan.name}", 1, 1))
    return plan.name


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
    folder = store.root / FOLDER / name
    if not _is_name(name) or not folder.is_dir():
        raise WeightsMissing(f"the backbone {name!r} is not installed", NextStep("list all", "weights"))
    freed = _size(folder)
    with staging_folder(store.root / FOLDER, name) as staging:
        folder.rename(staging / "removed")
    return freed


def _plan_local(here: Mapping[str, InstalledBackbone], path: Path, precision: Precision) -> InstallPlan:
    path = (find_training(path) or path) if path.is_dir() else path
    name = _name(local_name(path), precision)
    _check_free(here, name, str(path))
    known = here.get(name)
    if known and dict(known.files) == _hashes(path) and known.precision == precision:
        return _already(known)
    return InstallPlan(name, str(path), (), "see the publisher", precision=precision)


def _already(known: InstalledBackbone) -> InstallPlan:
    return InstallPlan(known.name, known.source, (), known.licence, installed=True)


def _check_free(here: Mapping[str, InstalledBackbone], name: str, source: str) -> None:
    if (known := here.get(name)) and known.source != source:
        raise WeightsError(
            f"a backbone named {name!r} from {known.source} is installed",
            NextStep("remove it first", f"weights remove {name}"),
        )


def _convert(store: WeightStore, source: Path, plan: InstallPlan, out: Path) -> None:
    """Write the towers, tokenizer, configuration and manifest into the folder `out`."""
    from safetensors.numpy import save as safetensors_bytes

    from wordreel.nets.clip.limits import check_limits
    from wordreel.nets.clip.precision import precision_loss
    from wordreel.nets.clip.towers import tower_shapes, write_towers

    files = _hashes(source)
    config, state = read_backbone(source)
    config = replace(config, name=plan.name)
    check_limits(config)
    parameters = sum(math.prod(shape) for shape in tower_shapes(config).values())
    exact = plan.precision == "fp32"
    _check_space(out, (4 if exact else 8) * parameters)  # others are compared with float32 towers
    tokenizer = _tokenizer(store, source if source.is_dir() else source.parent, config)
    (out / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    (out / CONFIG).write_text(json.dumps(config.to_json(), indent=1), encoding="utf-8")
    write_towers(config, state, out, plan.precision)
    losses = {} if exact else precision_loss(config, state, out)
    if config.head is not None:
        head = {key.removeprefix(HEAD): np.asarray(state[key]) for key in state if key.startswith(HEAD)}
        (out / HEAD_FILE).write_bytes(safetensors_bytes(head))
    del state
    outputs = {path.name: file_sha256(path) for path in sorted(out.iterdir())}
    facts = [
        CONVERTER_VERSION,
        plan.precision,
        {**config.to_json(), "name": ""},
        tokenizer,
        sorted(files.items()),
    ]
    manifest = {
        "source": plan.source,
        "revision": plan.revision,
        "licence": plan.licence,
        "precision": plan.precision,
        "files": files,
        "outputs": outputs,
        "losses": {tower: loss.mean for tower, loss in losses.items()},
        "fingerprint": hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16],
    }
    _check_runs(Backbone(out, str(manifest["fingerprint"]), outputs))
    (out / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")


def _tokenizer(store: WeightStore, folder: Path, config: BackboneConfig) -> str:
    """The folder's own tokenizer, or OpenAI's for a checkpoint that brings none."""
    from wordreel.nets.clip import tokenizer_files
    from wordreel.nets.clip.tokenizer import CLIP_VOCABULARY

    own = any((folder / name).is_file() for name in tokenizer_files.FILES)
    if own or config.tokenizer.kind != "clip":
        return tokenizer_files.from_folder(folder, config.tokenizer, config.text.vocabulary)
    store.fetch(CLIP_VOCABULARY)
    content = store.file(CLIP_VOCABULARY).read_text(encoding="utf-8")
    return tokenizer_files.check_vocabulary(content, config.tokenizer, config.text.vocabulary)


def _check_runs(backbone: Backbone) -> None:
    """Raise unless both towers give finite embeddings that are not all the same."""
    size = backbone.config.transform.size
    pictures = np.zeros((2, size, size, 3), np.uint8)
    pictures[1, : size // 2] = 255
    for tower, rows in (
        ("image", backbone.images(pictures)),
        ("text", backbone.texts(["a cat", "two dogs"])),
    ):
        if not np.isfinite(rows).all() or np.allclose(rows[0], rows[1], rtol=1e-6):
            raise WeightsError(
                f"the {tower} tower of {backbone.config.name} gives no usable embeddings",
                NextStep("check that the weights are trained ones"),
            )


def _hashes(source: Path) -> dict[str, str]:
    """The sha256 of the files of a source that are read."""
    if source.is_file():
        paths = [source, *(source.parent / name for name in SMALL_FILES)]
    else:
        paths = [path for path in sorted(source.iterdir()) if _is_read(path.name)]
    return {path.name: file_sha256(path) for path in paths if path.is_file()}


def _is_read(name: str) -> bool:
    return name in SMALL_FILES or _is_weight_file(name) or name.endswith(".index.json")


def _is_weight_file(name: str) -> bool:
    """Whether a file may hold weights, by its name; trainers number them, as in `pytorch_model.bin.4`."""
    return re.sub(r"\.\d+$", "", name).endswith(WEIGHT_SUFFIXES)


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


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed + SPARE_BYTES > free:
        raise WeightsError(
            f"the converted towers need {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are left for them",
            NextStep("free some space or set WORDREEL_WEIGHTS to another folder"),
        )


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
    from wordreel.nets.clip.read_config import read_json

    try:
        return read_json(path)
    except WeightsError:
        return {}


def _holds_towers(path: Path) -> bool:
    try:
        return bool(read_backbone(path))
    except NotSearchable:  # its reason comes with the attempt to install it
        return True
    except WeightsError:
        return False


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
