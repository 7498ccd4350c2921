import json

import pytest
from tests.tiny_backbone import write_clip
from typer.testing import CliRunner

from wordreel.backbones import installed as backbones
from wordreel.cli.app import app
from wordreel.errors import WeightsError, WeightsMissing
from wordreel.runtime.store import WeightStore


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    return WeightStore()


def run(*words):
    result = CliRunner().invoke(app, ["weights", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_list_is_what_weights_alone_prints(store):
    assert run("list") == run()


def test_backbones_are_listed_with_source_hash_and_size_and_removed(store, tmp_path):
    source = write_clip(tmp_path / "mine")
    assert "Backbones" not in run()
    for precision in ("fp32", "int8"):
        backbones.install(store, backbones.plan(store, str(source), precision))
    known = backbones.installed(store)
    lines = run().splitlines()
    start = lines.index("Backbones:")
    assert lines[start + 1] == f"{'mine':<24} installed  {known['mine'].bytes / 1e3:.1f} kB, fp32"
    assert lines[start + 2] == f"  from {source}"
    assert lines[start + 3] == f"  model.safetensors sha256 {known['mine'].files['model.safetensors']}"
    assert lines[start + 4].startswith(f"{'mine-int8':<24} installed  ")
    assert "int8, 1 − cosine image " in lines[start + 4]
    row = json.loads(run("--json"))[-1]
    assert (row["name"], row["source"], row["precision"]) == ("mine-int8", str(source), "int8")
    assert run("remove", "mine-int8") == f"mine-int8: removed, {row['bytes'] / 1e3:.1f} kB freed\n"
    assert list(backbones.installed(store)) == ["mine"]


def test_what_is_not_installed_cannot_be_removed(store):
    for name in ("minilm", "clip-vit-b-32", "../weights"):
        with pytest.raises(WeightsMissing, match="is not installed"):
            run("remove", name)


def test_weights_of_experts_are_removed_too(store):
    folder = store.root / "minilm"
    folder.mkdir(parents=True)
    (folder / "network.onnx").write_bytes(bytes(2000))
    assert run("remove", "minilm") == "minilm: removed, 2.0 kB freed\n"
    assert not folder.exists()
    with pytest.raises(WeightsError):
        store.file("minilm")
