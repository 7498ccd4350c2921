"""Checkpoints of PyTorch and safetensors files as arrays; hostile ones run nothing."""

import pickle
import shutil
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from safetensors.numpy import save_file

from wordreel.errors import UnsafePickle, WeightsError
from wordreel.runtime import torch_file
from wordreel.runtime.torch_file import (
    Placeholder,
    is_torchscript,
    read_checkpoint,
    read_state_dict,
)

LAYOUTS = pytest.mark.parametrize("new", [True, False])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@LAYOUTS
def test_tensors_of_every_kind_and_the_containers_around(tmp_path, torch, new):
    values = torch.arange(12.0).reshape(3, 4)
    weights = OrderedDict(
        straight=values,
        transposed=values.T,
        part=torch.nn.Parameter(values[1:, :2]),
        half=torch.tensor([0.5, 2]).half(),
        scalar=torch.tensor(7),
        brain=torch.tensor([1.0, -2.5, 3.25], dtype=torch.bfloat16),  # which holds these exactly
        flags=torch.tensor([True, False]),
        empty=torch.zeros(0, 4),
    )
    path = tmp_path / "model.bin"
    content = {"state_dict": weights, "epoch": 3, "args": ["a", (1, 2.5)]}
    torch.save(content, path, _use_new_zipfile_serialization=new)
    whole = read_checkpoint(path)
    assert (whole["epoch"], whole["args"]) == (3, ["a", (1, 2.5)])
    found = read_state_dict(path)
    assert list(found) == list(weights)
    for name, value in weights.items():
        expected = value.detach().float().numpy() if name == "brain" else value.detach().numpy()
        np.testing.assert_array_equal(found[name], expected)
        assert found[name].dtype == expected.dtype


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return shutil.copyfile, (__file__, str(self.path))


@LAYOUTS
def test_nothing_hostile_runs(tmp_path, torch, new):
    path, trace = tmp_path / "a.pth", tmp_path / "trace"
    torch.save({"w": torch.ones(2), "x": Bomb(trace)}, path, _use_new_zipfile_serialization=new)
    with pytest.raises(UnsafePickle, match=r"a.pth asks for shutil.copyfile; it was not loaded; ask for"):
        read_state_dict(path)
    assert isinstance(read_checkpoint(path, placeholders=True)["x"], Placeholder)
    assert not trace.exists()


@LAYOUTS
def test_objects_of_other_classes_keep_their_attributes(tmp_path, torch, new, monkeypatch):
    class Config:
        def __init__(self):
            self.values = {"lr": 0.1, "best": np.float64(3), "path": Bomb(tmp_path / "trace")}

    module = types.ModuleType("parse_config")
    module.Config, Config.__module__, Config.__qualname__ = Config, "parse_config", "Config"
    monkeypatch.setitem(sys.modules, "parse_config", module)
    path = tmp_path / "a.pth"
    torch.save(
        {"state_dict": {"w": torch.ones(2)}, "config": Config()}, path, _use_new_zipfile_serialization=new
    )
    monkeypatch.delitem(sys.modules, "parse_config")
    with pytest.raises(UnsafePickle, match=r"asks for parse_config.Config"):
        read_checkpoint(path)
    config = read_checkpoint(path, placeholders=True)["config"]
    assert config.state["values"]["lr"] == 0.1
    assert isinstance(config.state["values"]["path"], Placeholder)
    assert not (tmp_path / "trace").exists()


def test_what_is_no_checkpoint(tmp_path, torch):
    path = tmp_path / "a.pth"
    for content, said in (
        (b"<html>", "a.pth is neither a PyTorch checkpoint nor a safetensors file"),
        (b"", "neither"),
        (b"PK\3\4 cut", "a.pth is damaged"),
        (b"\x80\x02cut", "a.pth"),
        (pickle.dumps({"w": 1}), "a.pth"),
    ):
        path.write_bytes(content)
        with pytest.raises(WeightsError, match=said):
            read_checkpoint(path)
        with pytest.raises(WeightsError):
            read_checkpoint(path, placeholders=True)
    torch.save({"epoch": 3}, path)
    with pytest.raises(WeightsError, match="holds no named arrays"):
        read_state_dict(path)
    torch.save({"w": torch.ones(1000)}, path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(WeightsError, match="damaged"):
        read_checkpoint(path)


def test_archives_of_torchscript_are_known(tmp_path, torch):
    path = tmp_path / "a.pt"
    torch.save({"w": torch.ones(2)}, path)
    assert not is_torchscript(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a/constants.pkl", b"")
    assert is_torchscript(path)
    (tmp_path / "b").write_bytes(b"noise")
    assert not is_torchscript(tmp_path / "b")


def test_without_torch_checkpoints_say_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "a.pth").write_bytes(b"PK\3\4")
    with pytest.raises(WeightsError, match=r"which torch reads; run: pip install 'wordreel\[train\]'"):
        read_state_dict(tmp_path / "a.pth")
    save_file({"x": np.arange(3.0)}, tmp_path / "a.safetensors")
    assert read_state_dict(tmp_path / "a.safetensors")["x"].tolist() == [0, 1, 2]


def test_safetensors_of_every_kind(tmp_path, monkeypatch):
    path = tmp_path / "model"
    arrays = {
        "a": np.arange(6, dtype=np.float16).reshape(2, 3),
        "b": np.array([True]),
        "c": np.zeros(0, np.int64),
    }
    save_file(arrays, path)
    found = read_state_dict(path)
    for name, value in arrays.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == value.dtype
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    numbers = (np.array([1.0, -2.0], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    assert read_state_dict(path)["x"].tolist() == [1.0, -2.0]
    monkeypatch.delitem(torch_file.DTYPES, "F16")
    save_file(arrays, path)
    with pytest.raises(WeightsError, match="a has the type F16, which is not read"):
        read_state_dict(path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(WeightsError, match="is not a safetensors file"):
        read_state_dict(path)
