"""Installing backbones from local files: what comes out, and that a refused one leaves no trace."""

import json
import re
import shutil

import numpy as np
import pytest
from tests.tiny_backbone import DIM, PREPROCESSOR, random_weights, write_clip, write_json, write_onnx

from wordreel.backbones import installed as backbones
from wordreel.backbones.tower import transform_images
from wordreel.errors import WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime.hub_download import split_hub_id
from wordreel.runtime.store import WeightStore

RNG = np.random.default_rng(0)


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_onnx(tmp_path_factory.mktemp("models") / "Tiny CLIP")


@pytest.fixture
def bad(clip, tmp_path):
    """A copy of the model for a test to damage."""
    return shutil.copytree(clip, tmp_path / "bad")


def add(store, source, precision="fp32", export=None):
    return backbones.install(store, backbones.plan(store, str(source), precision), export=export)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("layout", ["onnx", "hub", "immich"])
def test_published_files_are_taken_as_they_are_and_run(store, tmp_path, layout):
    source = write_onnx(tmp_path / "model", layout=layout)
    assert add(store, source) == "model"
    held = contents(store.root / "backbones" / "model")
    assert {name: held[name] for name in contents(source)} == contents(source)
    backbone = backbones.open_backbone(store, "model")
    pictures = RNG.integers(0, 256, (5, 40, 60, 3), np.uint8)
    pixels = transform_images(pictures, backbone.config.transform)
    quarters = pixels.reshape(5, 3, 2, 16, 2, 16).mean(axis=(3, 5)).reshape(5, -1)
    matrix, tokens = random_weights(np.random.default_rng(0))
    np.testing.assert_allclose(backbone.images(pictures), quarters @ matrix, atol=1e-4)
    texts = ["the red cat", "a blue dog", ""]
    ids, mask = backbone.tokenizer.encode(texts)
    expected = [tokens[row[real]].mean(axis=0) for row, real in zip(ids, mask, strict=True)]
    np.testing.assert_allclose(backbone.texts(texts), expected, atol=1e-5)
    assert backbone.images(pictures[:0]).shape == (0, DIM)
    assert backbone.texts([]).shape == (0, DIM)
    assert (backbone.config.name, backbone.config.family, backbone.head) == ("model", "clip", None)


def test_another_precision_is_another_published_file(store, tmp_path):
    source = write_onnx(tmp_path / "model")
    write_onnx(source, seed=1, suffix="_quantized")
    exact, name = add(store, source), add(store, source, "int8")
    assert name == f"{exact}-int8"
    known = backbones.installed(store)
    assert (known[exact].precision, known[name].precision) == ("fp32", "int8")
    assert "onnx/vision_model_quantized.onnx" in known[name].outputs
    assert known[name].fingerprint != known[exact].fingerprint
    assert backbones.open_backbone(store, name).texts(["a cat"]).shape == (1, DIM)
    with pytest.raises(WeightsError, match="holds fp32 and int8, not fp16"):
        add(store, source, "fp16")


def test_weights_beside_the_graph_come_along(store, tmp_path):
    import onnx

    source = write_onnx(tmp_path / "model")
    path = source / "onnx" / "vision_model.onnx"
    data = {"save_as_external_data": True, "location": "vision_model.onnx_data", "size_threshold": 0}
    onnx.save(onnx.load(path), path, **data)
    name = add(store, source)
    backbone = backbones.open_backbone(store, name)
    assert backbone.images(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, DIM)
    (store.root / "backbones" / name / "onnx" / "vision_model.onnx_data").write_bytes(b"")
    with pytest.raises(WeightsCorrupt, match=r"vision_model.onnx_data does not have the expected hash"):
        backbones.open_backbone(store, name).images(np.zeros((1, 32, 32, 3), np.uint8))


def test_other_layouts_are_exported_first(store, tmp_path):
    source, seen = write_clip(tmp_path / "torch"), []

    def export(path, folder):
        seen.append((path, list(folder.iterdir())))
        write_onnx(folder)

    plan = backbones.plan(store, str(source))
    assert (plan.name, plan.files, plan.installed) == ("torch", (), False)
    with pytest.raises(WeightsError, match="has no ONNX files in fp32"):
        backbones.install(store, plan)
    assert backbones.install(store, plan, export=export) == "torch"
    assert seen == [(source, [])]
    known = backbones.installed(store)["torch"]
    assert set(known.files) == {path.name for path in source.iterdir()}
    assert backbones.plan(store, str(source)).installed
    write_clip(source, seed=1)
    assert not backbones.plan(store, str(source)).installed
    with pytest.raises(WeightsError, match="has no ONNX files in int8"):
        add(store, source, "int8", export)


def test_every_named_backbone_is_whole():
    assert len({entry.hub for entry in backbones.NAMED.values()}) == len(backbones.NAMED)
    for name, entry in backbones.NAMED.items():
        assert backbones._name(name, "fp32") == name == entry.name
        assert split_hub_id(entry.hub) == (entry.hub, "")
        assert re.fullmatch("([0-9a-f]{40})?", entry.revision)
        assert 100 < entry.megabytes < 10_000
        assert entry.title
        assert entry.licence


def test_what_is_installed_is_listed_with_its_hashes(store, clip):
    name = add(store, clip)
    (known,) = backbones.installed(store).values()
    assert known.name == name == "tiny-clip"
    assert (known.source, known.revision) == (str(clip), "")
    assert set(known.files) == set(contents(clip))
    assert known.bytes == sum(len(data) for data in contents(store.root / "backbones" / name).values())
    assert len(known.fingerprint) == 16
    assert known.fingerprint == backbones.open_backbone(store, name).fingerprint


def test_a_second_time_there_is_nothing_to_do(store, clip):
    add(store, clip)
    before = contents(store.root)
    for source in (str(clip), "tiny-clip"):
        plan = backbones.plan(store, source)
        assert plan.installed
        assert plan.download_bytes == 0
        assert backbones.install(store, plan) == "tiny-clip"
    assert contents(store.root) == before


def test_changed_files_are_installed_anew_under_another_fingerprint(store, bad):
    add(store, bad)
    first = backbones.installed(store)["bad"].fingerprint
    write_onnx(bad, seed=1)
    assert not backbones.plan(store, str(bad)).installed
    add(store, bad)
    assert backbones.installed(store)["bad"].fingerprint != first


def test_two_sources_of_one_name_do_not_replace_each_other(store, clip, tmp_path):
    add(store, clip)
    other = write_onnx(tmp_path / "tiny clip", seed=1)
    with pytest.raises(
        WeightsError, match="is installed; remove it first: `wordreel weights remove tiny-clip`"
    ):
        backbones.plan(store, str(other))
    assert backbones.remove(store, "tiny-clip") > 30_000
    assert add(store, other) == "tiny-clip"


def test_removed_ones_are_gone(store, clip):
    add(store, clip)
    backbones.remove(store, "tiny-clip")
    assert contents(store.root) == {}
    assert backbones.installed(store) == {}
    for name in ("tiny-clip", "../weights", "", "."):
        with pytest.raises(WeightsMissing, match="not installed"):
            backbones.open_backbone(store, name)
        with pytest.raises(WeightsMissing, match="not installed"):
            backbones.remove(store, name)


def test_damage_in_the_store_is_noticed(store, clip):
    folder = store.root / "backbones" / add(store, clip)
    text = folder / "onnx" / "text_model.onnx"
    text.write_bytes(bytes(text.stat().st_size))
    backbone = backbones.open_backbone(store, "tiny-clip")
    assert backbone.images(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, DIM)  # the other tower is fine
    with pytest.raises(WeightsCorrupt, match=r"text_model.onnx .*weights remove tiny-clip"):
        backbone.texts(["a dog"])
    (folder / "manifest.json").write_text("{")
    assert backbones.installed(store) == {}
    with pytest.raises(WeightsCorrupt, match="damaged or was installed by another version"):
        backbones.open_backbone(store, "tiny-clip")
    assert backbones.remove(store, "tiny-clip")


def test_what_names_a_backbone(store, clip, tmp_path):
    assert backbones.is_backbone(store, str(clip))
    assert backbones.is_backbone(store, "clip-vit-b-32")
    assert backbones.is_backbone(store, "someone/some-model@v1")
    assert not backbones.is_backbone(store, "tiny-clip")
    assert not backbones.is_backbone(store, str(tmp_path))
    assert not backbones.is_backbone(store, str(clip / "tokenizer.json"))
    assert not backbones.is_backbone(store, "joint")
    add(store, clip)
    assert backbones.is_backbone(store, "tiny-clip")


def refused(store, source, said, error=WeightsError):
    """What is in the store must be the same afterwards, and nothing beside it."""
    before = contents(store.root)
    with pytest.raises(error, match=said):
        add(store, source)
    assert contents(store.root) == before


@pytest.fixture
def filled(store, clip):
    add(store, clip)
    return store


@pytest.mark.parametrize("keep", [0, 4, 1000, -1000])
def test_truncated_networks(filled, bad, keep):
    path = bad / "onnx" / "text_model.onnx"
    path.write_bytes(path.read_bytes()[:keep])
    refused(filled, bad, r"text_model.onnx is not a network that can be run")


def test_networks_that_do_not_belong_together(filled, bad):
    write_onnx(bad, text_dim=12)
    refused(filled, bad, "gives pictures 16 numbers and texts 12: they share no space")


def test_networks_that_give_nothing_usable(filled, bad, monkeypatch):
    import tests.tiny_backbone as tiny

    for value in (0.0, np.nan):
        monkeypatch.setattr(
            tiny,
            "random_weights",
            lambda rng, *dims, value=value: [
                np.full_like(part, value) for part in random_weights(rng, *dims)
            ],
        )
        write_onnx(bad)
        refused(filled, bad, "the image tower of bad gives no usable embeddings")


def test_descriptions_that_do_not_fit(filled, bad):
    write_json(bad / "preprocessor_config.json", {**PREPROCESSOR, "size": 64, "crop_size": 64})
    refused(filled, bad, "bad cannot be run")
    write_json(bad / "preprocessor_config.json", PREPROCESSOR)
    tokenizer = json.loads((bad / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["cat</w>"] = 10**6
    write_json(bad / "tokenizer.json", tokenizer)
    refused(filled, bad, "bad cannot be run")
    (bad / "tokenizer.json").write_text("{}")
    refused(filled, bad, "the tokenizer is damaged")
