"""Bringing published weights: from a file, from a hub, and every way it can be the wrong one."""

import hashlib
import json
import pickle
from importlib import import_module

import numpy as np
import pytest
from safetensors.numpy import save_file

from wordreel.errors import WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime import hub, weight_table
from wordreel.runtime.nets import convnets
from wordreel.runtime.nets.net_builder import weight_shapes
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore

TINY = convnets.SENet((1, 1), groups=2, reduction=4, planes=4, classes=5)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(convnets, "SENET154", TINY)
    return WeightStore(tmp_path / "store")


def state_of(network, heads=True):
    shapes, unused = weight_shapes(network)
    rng = np.random.default_rng(0)
    wanted = shapes | (unused if heads else {})
    return {key: np.abs(rng.normal(0, 0.3, shape)).astype(np.float32) for key, shape in wanted.items()}


def saved(path, state):
    save_file(state, str(path))
    return path


def test_a_file_is_checked_converted_and_remembered_by_its_hash(store, tmp_path):
    path = saved(tmp_path / "senet154-c7b49a05.pth", state_of(TINY) | {"x.num_batches_tracked": np.zeros(1)})
    folder = hub.add_checkpoint(store, "senet154", path)
    assert store.has("senet154")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["source"] == {"senet154": hashlib.sha256(path.read_bytes()).hexdigest()}
    features = Network(store.file("senet154"))(frames=np.ones((2, 3, 32, 32), np.float32))["features"]
    assert features.shape == (2, 32)
    first = store.source_hash("senet154")
    hub.add_checkpoint(store, "senet154", saved(path, {k: v * 2 for k, v in state_of(TINY).items()}))
    assert store.source_hash("senet154") != first


def test_a_wrong_file_changes_nothing_and_says_which_is_right(store, tmp_path):
    right = saved(tmp_path / "right.pth", state_of(TINY))
    hub.add_checkpoint(store, "senet154", right)
    before = store.source_hash("senet154")
    broken = state_of(TINY)
    broken["layer2.0.conv1.weight"] = broken["layer2.0.conv1.weight"][:-1]
    with pytest.raises(
        WeightsError, match=r"wrong\.pth is not senet154-c7b49a05\.pth of Cadene.*layer2\.0\.conv1"
    ):
        hub.add_checkpoint(store, "senet154", saved(tmp_path / "wrong.pth", broken))
    with pytest.raises(WeightsError, match=r"it has no layer0\.conv1\.weight"):
        hub.add_checkpoint(
            store, "senet154", saved(tmp_path / "w.pth", state_of(convnets.ResNet((1, 1), planes=4)))
        )
    assert store.source_hash("senet154") == before
    assert sorted(entry.name for entry in store.root.iterdir()) == ["senet154"]


def test_a_file_that_is_no_checkpoint_is_refused(store, tmp_path):
    (tmp_path / "page.pth").write_bytes(b"<html>sign in first</html>")
    with pytest.raises(WeightsError, match=r"page\.pth"):
        hub.add_checkpoint(store, "senet154", tmp_path / "page.pth")
    with pytest.raises(WeightsError, match="there is no file"):
        hub.add_checkpoint(store, "senet154", tmp_path / "nowhere.pth")
    assert not store.has("senet154")


@pytest.mark.parametrize("length", [0x80, 0x4B50, 0x80 + 256 * 20])
def test_a_safetensors_file_is_one_whatever_the_length_of_its_header(store, tmp_path, length):
    from wordreel.runtime.torch_file import read_state_dict

    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(length)
    (tmp_path / "x").write_bytes(length.to_bytes(8, "little") + header + np.float32(7).tobytes())
    assert read_state_dict(tmp_path / "x")["a"].tolist() == [7.0]


def test_a_hostile_pickle_is_not_run(store, tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'run')!r}, 'w')",))

    path = tmp_path / "resnet50_ft_weight.pkl"
    path.write_bytes(pickle.dumps({"conv1.weight": Evil()}))
    with pytest.raises(WeightsError):
        hub.add_checkpoint(store, "vggface2_resnet50", path)
    assert not (tmp_path / "run").exists()


def test_a_plain_pickle_of_arrays_is_read_where_that_is_what_is_published(store, tmp_path, monkeypatch):
    tiny = convnets.ResNet((1, 1), planes=4, caffe=True)
    monkeypatch.setattr(convnets, "VGGFACE2_RESNET50", tiny)
    path = tmp_path / "resnet50_ft_weight.pkl"
    path.write_bytes(pickle.dumps(state_of(tiny), protocol=2))
    hub.add_checkpoint(store, "vggface2_resnet50", path)
    assert store.has("vggface2_resnet50")
    path.write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(WeightsError, match="no named arrays"):
        hub.add_checkpoint(store, "vggface2_resnet50", path)


def test_places_checkpoints_of_2017_are_understood(store, tmp_path, monkeypatch):
    tiny = convnets.DenseNet((1, 2), growth=4, start=6, bottleneck=2)
    monkeypatch.setattr(convnets, "DENSENET161_PLACES365", tiny)
    old = {
        "module." + key.replace("norm1.", "norm.1.").replace("conv2.", "conv.2."): value
        for key, value in state_of(tiny).items()
    }
    hub.add_checkpoint(store, "densenet161_places365", saved(tmp_path / "d.pth.tar", old))
    assert store.has("densenet161_places365")


def test_weights_too_large_for_one_file_lie_beside_it(store, tmp_path, monkeypatch):
    tiny = convnets.ResNet((1, 1), groups=2, group_width=32, planes=16)
    monkeypatch.setattr(convnets, "RESNEXT101_32X48D", tiny)
    folder = hub.add_checkpoint(store, "resnext101_wsl", saved(tmp_path / "x.pth", state_of(tiny)))
    assert {path.name for path in folder.iterdir()} == {"network.onnx", "network.weights", "manifest.json"}
    Network(store.folder("resnext101_wsl") / "network.onnx")(frames=np.ones((1, 3, 32, 32), np.float32))
    (folder / "network.weights").write_bytes(b"other")
    assert WeightStore(store.root).status("resnext101_wsl") == "corrupt"


def test_a_file_that_carries_its_hash_in_its_name_must_have_it(store, tmp_path):
    path = saved(tmp_path / "ig_resnext101_32x48-3e41cc8a.pth", state_of(TINY))
    with pytest.raises(WeightsCorrupt, match="does not begin with 3e41cc8a"):
        hub.add_checkpoint(store, "resnext101_wsl", path)


def test_missing_weights_name_the_file_its_publisher_and_the_command(store):
    with pytest.raises(WeightsMissing) as caught:
        store.folder("senet154")
    message = str(caught.value)
    assert "senet154-c7b49a05.pth" in message
    assert "Cadene/pretrained-models.pytorch" in message
    assert "`wordreel weights add senet154 --file senet154-c7b49a05.pth`" in message
    with pytest.raises(WeightsMissing, match=r"not on the package index.*weights add vggish"):
        store.fetch("vggish")


def test_only_these_can_be_added(store, tmp_path):
    with pytest.raises(WeightsError, match=r"these are: senet154, resnext101_wsl"):
        hub.add_checkpoint(store, "minilm", tmp_path)


@pytest.mark.parametrize("entry", weight_table.PUBLISHED.values(), ids=lambda entry: entry.name)
def test_every_entry_is_whole(entry):
    assert weight_table.find(entry.name) is entry
    module, _, name = entry.network.partition(":")
    assert callable(network := getattr(import_module(module), name)) or network.shapes()
    if entry.rename:
        module, _, name = entry.rename.partition(":")
        assert callable(getattr(import_module(module), name))
    assert not entry.digest or entry.digest in entry.file


class FakeHub:
    """Stands in for the hub: `files` by repository and name, anything else fails as the hub does."""

    def __init__(self, monkeypatch, files, error=None):
        import huggingface_hub

        self.files, self.error, self.asked = files, error, []
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", self)

    def __call__(self, repository, file):
        from huggingface_hub import errors

        self.asked.append((repository, file))
        if self.error is not None:
            raise self.error
        if (repository, file) not in self.files:
            raise errors.EntryNotFoundError("404")
        return str(self.files[repository, file])


def test_a_hub_id_brings_the_first_of_the_usual_files(store, tmp_path, monkeypatch):
    path = saved(tmp_path / "blob", state_of(TINY, heads=False))
    fake = FakeHub(monkeypatch, {("someone/senet", "pytorch_model.bin"): path})
    hub.add_from_hub(store, "senet154", "someone/senet")
    assert [file for _, file in fake.asked] == ["model.safetensors", "pytorch_model.bin"]
    assert store.has("senet154")


def test_a_hub_id_may_name_the_file(store, tmp_path, monkeypatch):
    path = saved(tmp_path / "blob", state_of(TINY))
    fake = FakeHub(monkeypatch, {("a/b", "x/y.bin"): path})
    hub.add_from_hub(store, "senet154", "a/b:x/y.bin")
    assert fake.asked == [("a/b", "x/y.bin")]
    with pytest.raises(WeightsError, match=r"a/b has no z\.bin; name the file"):
        hub.add_from_hub(store, "senet154", "a/b:z.bin")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LocalEntryNotFoundError", "could not be fetched from the hub"),
        ("OfflineModeIsEnabled", "could not be fetched from the hub"),
        ("HFValidationError", "is not a hub id"),
    ],
)
def test_what_a_hub_may_answer(store, monkeypatch, name, said):
    from huggingface_hub import errors

    FakeHub(monkeypatch, {}, getattr(errors, name)("no way"))
    with pytest.raises(WeightsError, match=said):
        hub.add_from_hub(store, "senet154", "a/b")


def test_entries_are_data():
    assert "kylemin/S3D" in weight_table.PUBLISHED["s3d"].next_step().text
    assert weight_table.PUBLISHED["s3d"].next_step().command == "weights add s3d --file S3D_kinetics400.pt"
