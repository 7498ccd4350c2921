"""The models of a library: built-in ones, installed backbones, and checkpoints copied into `models/`.

A library keeps its own copy, which works when the checkpoint's folder moves or is trained further.
Nothing here needs torch until a trained model is opened.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.catalogue.store import MODEL_SETTING, SOURCE_SETTING, LibraryStore
from wordreel.errors import LibraryError, NextStep, WeightsCorrupt, WeightsMissing, WordreelError
from wordreel.models.base import CheckpointModel, Model
from wordreel.models.laboratory import open_trained
from wordreel.runtime.store import WeightStore
from wordreel.util.atomic import atomic_write, make_dir, sync_dir, sync_file

if TYPE_CHECKING:
    from wordreel.backbones.backbone import Backbone
    from wordreel.models.zero_shot import ZeroShot

DEFAULT = "joint"  # the model that comes with wordreel
BUILT_IN = (DEFAULT,)
RETIRED = ("reel", "bridge")  # those of earlier versions, which the default one replaces
FOLDER = "models"
WEIGHTS, FACTS = "model.safetensors", "model.json"
BEST = "best"  # where training puts the checkpoint that did best on validation
UNFINISHED = ".new"
TRAINED = "wordreel"  # metadata key of what a training writes
OLD_HEADERS = {"reel", "wordreel.zero_shot"}  # metadata keys of what earlier versions tuned
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
BACK = NextStep("go back to the model that comes with wordreel", f"use {DEFAULT}")


@dataclass(frozen=True)
class StoredModel:
    """A checkpoint inside a library, without its weights being read."""

    fingerprint: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return str(self.facts.get("name", self.fingerprint))


def in_use(store: LibraryStore) -> str:
    """Return the name of the library's model, or the fingerprint of a stored one."""
    key = store.setting(MODEL_SETTING)
    return DEFAULT if not key or key in RETIRED else key


def stored_models(store: LibraryStore) -> list[StoredModel]:
    """Return every checkpoint of the library, by name."""
    models = []
    for folder in (store.path / FOLDER).glob("[!.]*"):
        try:
            facts = json.loads((folder / FACTS).read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(facts, dict):
            models.append(StoredModel(folder.name, folder, facts))
    return sorted(models, key=lambda one: (one.name, one.fingerprint))


def open_model(store: LibraryStore, weights: WeightStore, key: str | None = None) -> Model:
    """Return the model the library uses, or another one of its own."""
    key = key or in_use(store)
    model = open_named(store.path, weights, key)
    if model is None:
        raise not_installed(store, key)
    return model


def open_named(library: Path, weights: WeightStore, key: str) -> Model | None:
    """Return a model by what `in_use` calls it; None if it is a backbone that is not installed.

    Reads the library's folder, not its catalogue.
    """
    if key in BUILT_IN:
        from wordreel.models.joint.model import Joint

        return Joint(weights)
    folder = library / FOLDER / key
    if not folder.is_dir() and not FINGERPRINT.fullmatch(key):
        from wordreel.backbones.installed import installed

        return open_zero_shot(weights, key) if key in installed(weights) else None
    try:
        model = open_checkpoint(folder, weights)
    except WordreelError as error:
        raise type(error)(f"the model of this library cannot be used: {error}", BACK) from error
    if model.fingerprint != key:
        raise WeightsCorrupt(
            f"{folder} does not hold the model it was named after, or wordreel has other experts or row "
            "weights now than those it was made for",
            BACK,
        )
    return model


def open_zero_shot(weights: WeightStore, name: str) -> ZeroShot:
    """Return the model of an installed backbone."""
    from wordreel.models.zero_shot import ZeroShot

    return ZeroShot(weights, *open_backbone(weights, name))


def open_backbone(weights: WeightStore, name: str) -> tuple[Backbone, str]:
    """Return an installed backbone, and the fingerprint of the expert that embeds frames with it."""
    from wordreel.backbones import installed as backbones
    from wordreel.experts import registry
    from wordreel.experts.network_experts import expert_fingerprint

    backbone = backbones.open_backbone(weights, name)
    return backbone, expert_fingerprint(registry.card(name, weights), backbone)


def backbone_in_use(store: LibraryStore, weights: WeightStore) -> str | None:
    """Return the backbone whose frame embeddings the library's model reads; raise if not installed."""
    from wordreel.backbones.installed import installed

    key = in_use(store)
    stored = next((one for one in stored_models(store) if one.fingerprint == key), None)
    if key in BUILT_IN or stored is not None:
        return None
    if key not in installed(weights):
        raise not_installed(store, key)
    return key


def not_installed(store: LibraryStore, name: str) -> WeightsMissing:
    """Return the error for a backbone that this machine does not have."""
    source = store.setting(SOURCE_SETTING) or name
    return WeightsMissing(
        f"this library searches with {name}, which is not installed on this machine",
        NextStep(f"install it, or go back with `wordreel use {DEFAULT}`", f"use {source}"),
    )


def open_checkpoint(folder: Path, weights: WeightStore) -> CheckpointModel:
    """Open the model in a folder: one trained here, or the default one after tuning."""
    from wordreel.models.joint.adapter import is_adapter

    path = folder / WEIGHTS
    if is_adapter(path):
        from wordreel.models.joint.model import Joint

        return Joint(weights, path)
    if set(header_of(path)) & OLD_HEADERS:
        raise WordreelError(f"{folder} was made from a model of an earlier version, which is no longer there")
    return open_trained(folder, weights)


def header_of(path: Path) -> dict[str, str]:
    """Return the metadata of a weight file; empty if it cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "numpy") as file:
            return file.metadata() or {}
    except (SafetensorError, OSError, ValueError):
        return {}


def model_kind(path: Path) -> str | None:
    """Return the kind of model that a training wrote into a weight file ("ce", "clip4clip", …), else None."""
    try:
        return str(json.loads(header_of(path)[TRAINED])["config"]["kind"])
    except (ValueError, KeyError, TypeError):
        return None


def find_checkpoint(path: Path) -> Path:
    """Return the checkpoint folder that a path names: itself, or the best one of a training."""
    return path / BEST if not (path / WEIGHTS).exists() and (path / BEST / WEIGHTS).exists() else path


def save_model(store: LibraryStore, model: CheckpointModel, weights: WeightStore) -> Model:
    """Copy a checkpoint into the library and open it there; the old copy stays if it is whole.

    The copy is renamed into place once it is on the disk, so that a kill leaves the whole copy or none.
    """
    with store.writing():
        target = store.path / FOLDER / model.fingerprint
        folder, fresh = model.folder, target.with_name(f"{UNFINISHED}-{model.fingerprint}")
        try:
            if target.is_dir():
                try:
                    return open_model(store, weights, model.fingerprint)
                except WordreelError:
                    shutil.rmtree(target)
            make_dir(target.parent)
            for unfinished in target.parent.glob(f"{UNFINISHED}-*"):
                shutil.rmtree(unfinished)
            fresh.mkdir()
            for name in (WEIGHTS, *model.text_files):
                make_dir((fresh / name).parent)
                shutil.copyfile(folder / name, fresh / name)
                sync_file(fresh / name)
            atomic_write(fresh / FACTS, json.dumps(dict(model.facts), indent=2, ensure_ascii=False).encode())
            if open_checkpoint(fresh, weights).fingerprint != model.fingerprint:
                raise WeightsCorrupt(f"{folder} changed while it was being copied", NextStep("try again"))
            fresh.rename(target)
            sync_dir(target.parent)
        except OSError as error:
            raise LibraryError(
                f"the model cannot be copied into {target.parent}: {error.strerror or error}"
            ) from error
    return open_model(store, weights, model.fingerprint)
