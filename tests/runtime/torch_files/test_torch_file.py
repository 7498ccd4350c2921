"""Checkpoints are written here by hand: a stand-in `torch` module is pickled by name, storages by key."""

import io
import os
import pickle
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from safetensors.numpy import save_file

from wordreel.errors import UnsafePickle, WeightsError
from wordreel.runtime.torch_files.lazy_torch import open_state_dict
from wordreel.runtime.torch_files.torch_file import MAGIC, read_checkpoint, read_state_dict
from wordreel.runtime.torch_files.torchscript import is_torchscript


class Storage:
    """`raw` bytes of `count` numbers; `kind` is PyTorch's name for them."""

    def __init__(self, key, kind, raw, count):
        self.key, self.kind, self.raw, self.count = key, kind, raw, count


class FakeTensor:
    def __init__(self, storage, offset, shape, strides, parameter=False):
        self.parts = (storage, offset, shape, strides, False, OrderedDict())
        self.parameter = parameter

    def __reduce__(self):
        utils = sys.modules["torch._utils"]
        if self.parameter:
            plain = FakeTensor(*self.parts[:4])
            return utils._rebuild_parameter, (plain, True, OrderedDict())
        return utils._rebuild_tensor_v2, self.parts


@pytest.fixture
def torch(monkeypatch):
    def named(module, name):
        made = types.FunctionType((lambda *a: None).__code__, {}, name)
        made.__module__, made.__qualname__ = module.__name__, name
        setattr(module, name, made)

    root, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    named(utils, "_rebuild_tensor_v2")
    named(utils, "_rebuild_parameter")
    named(root, "load")
    for kind in ("Float", "Half", "Long", "BFloat16", "Bool"):
        setattr(root, f"{kind}Storage", type(f"{kind}Storage", (), {"__module__": "torch"}))
    root._utils = utils
    monkeypatch.setitem(sys.modules, "torch", root)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    return root


def dump(value, torch, file, legacy=False):
    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            if isinstance(thing, Storage):
                kind = getattr(torch, f"{thing.kind}Storage")
                return ("storage", kind, thing.key, "cpu", thing.count, *([None] if legacy else []))
            return None

    Pickler(file, 2).dump(value)


def write_zip(path, value, torch, storages, folder="archive", compression=zipfile.ZIP_STORED):
    pickled = io.BytesIO()
    dump(value, torch, pickled)
    with zipfile.ZipFile(path, "w", compression) as zipped:
        zipped.writestr(f"{folder}/data.pkl", pickled.getvalue())
        zipped.writestr(f"{folder}/byteorder", "little")
        for storage in storages:
            zipped.writestr(f"{folder}/data/{storage.key}", storage.raw)


def write_stream(path, value, torch, storages):
    with path.open("wb") as file:
        pickle.dump(MAGIC, file, 2)
        pickle.dump(1001, file, 2)
        pickle.dump({"little_endian": True, "type_sizes": {"int": 4}}, file, 2)
        dump(value, torch, file, legacy=True)
        pickle.dump([storage.key for storage in storages], file, 2)
        for storage in storages:
            file.write(storage.count.to_bytes(8, "little") + storage.raw)


def storage(key, kind, array):
    return Storage(key, kind, array.tobytes(), array.size)


WRITERS = pytest.mark.parametrize("write", [write_zip, write_stream])


@WRITERS
def test_tensors_of_every_kind_and_the_containers_around(tmp_path, torch, write):
    path = tmp_path / "model.bin"
    values = np.arange(12, dtype=np.float32)
    exact = np.array([1.0, -2.5, 3.25], np.float32)  # bfloat16 holds these exactly
    stores = [
        storage("0", "Float", values),
        storage("1", "Half", np.array([0.5, 2], np.float16)),
        storage("2", "Long", np.array([7], np.int64)),
        storage("3", "BFloat16", (exact.view(np.uint32) >> 16).astype(np.uint16)),
        storage("4", "Bool", np.array([True, False])),
    ]
    weights = OrderedDict(
        straight=FakeTensor(stores[0], 0, (3, 4), (4, 1)),
        transposed=FakeTensor(stores[0], 0, (4, 3), (1, 4)),
        part=FakeTensor(stores[0], 5, (2, 2), (4, 1), parameter=True),
        half=FakeTensor(stores[1], 0, (2,), (1,)),
        scalar=FakeTensor(stores[2], 0, (), ()),
        brain=FakeTensor(stores[3], 0, (3,), (1,)),
        flags=FakeTensor(stores[4], 0, (2,), (1,)),
        empty=FakeTensor(stores[0], 0, (0, 4), (4, 1)),
    )
    weights._metadata = OrderedDict(version=1)
    write(path, {"state_dict": weights, "epoch": 3, "args": {"lr": 0.1, "names": ["a"]}}, torch, stores)
    whole = read_checkpoint(path)
    assert whole["epoch"] == 3
    assert whole["args"] == {"lr": 0.1, "names": ["a"]}
    found = read_state_dict(path)
    assert list(found) == list(weights)
    np.testing.assert_array_equal(found["straight"], values.reshape(3, 4))
    np.testing.assert_array_equal(found["transposed"], values.reshape(3, 4).T)
    np.testing.assert_array_equal(found["part"], [[5, 6], [9, 10]])
    np.testing.assert_array_equal(found["half"], np.array([0.5, 2], np.float16))
    np.testing.assert_array_equal(found["brain"], exact)
    np.testing.assert_array_equal(found["flags"], [True, False])
    assert (found["half"].dtype, found["brain"].dtype) == (np.float16, np.float32)
    assert found["scalar"].shape == ()
    assert found["scalar"] == 7
    assert found["empty"].shape == (0, 4)


@WRITERS
@pytest.mark.parametrize(
    ("offset", "shape", "strides"),
    [
        (0, (5,), (1,)),
        (1, (4,), (1,)),
        (0, (2, 2), (3, 1)),
        (0, (2**20, 2**20), (0, 0)),
        (-1, (2,), (1,)),
        (0, (2,), (-1,)),
        (2**40, (1,), (1,)),
        (0, (2, 2), (1,)),
    ],
)
def test_tensors_never_reach_outside_their_storage(tmp_path, torch, write, offset, shape, strides):
    four = storage("0", "Float", np.zeros(4, np.float32))
    write(tmp_path / "a.pth", {"w": FakeTensor(four, offset, shape, strides)}, torch, [four])
    with pytest.raises(UnsafePickle):
        read_state_dict(tmp_path / "a.pth")


@WRITERS
def test_short_storages(tmp_path, torch, write):
    short = Storage("0", "Float", b"\0" * 7, 4)
    write(tmp_path / "a.pth", {"w": FakeTensor(short, 0, (4,), (1,))}, torch, [short])
    with pytest.raises(UnsafePickle):
        read_state_dict(tmp_path / "a.pth")


@WRITERS
def test_code_in_a_checkpoint_does_not_run(tmp_path, torch, write):
    class Owned:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "owned"),)

    for value in (Owned(), {"w": [Owned()]}):
        write(tmp_path / "a.pth", value, torch, [])
        with pytest.raises(UnsafePickle, match="mkdir"):
            read_checkpoint(tmp_path / "a.pth")
    write(tmp_path / "a.pth", torch.load, torch, [])
    with pytest.raises(UnsafePickle, match=r"torch\.load"):
        read_checkpoint(tmp_path / "a.pth")
    assert not (tmp_path / "owned").exists()


def test_damaged_and_swollen_zips(tmp_path, torch):
    path = tmp_path / "a.pth"
    big = storage("0", "Float", np.zeros(250_000, np.float32))
    write_zip(
        path, {"w": FakeTensor(big, 0, (250_000,), (1,))}, torch, [big], compression=zipfile.ZIP_DEFLATED
    )
    assert path.stat().st_size < 10_000
    with pytest.raises(UnsafePickle, match="more than"):
        read_checkpoint(path, max_bytes=100_000)
    write_zip(path, {"w": FakeTensor(big, 0, (250_000,), (1,))}, torch, [])
    with pytest.raises(UnsafePickle, match="damaged"):
        read_checkpoint(path)
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("readme.txt", "hello")
    with pytest.raises(WeightsError, match=r"data\.pkl"):
        read_checkpoint(path)
    path.write_bytes(b"PK\x03\x04" + b"\0" * 50)
    with pytest.raises(UnsafePickle, match="damaged"):
        read_checkpoint(path)


def test_safetensors_by_content(tmp_path):
    path = tmp_path / "named.pth"
    save_file({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1], np.int64)}, path)
    found = read_state_dict(path)
    np.testing.assert_array_equal(found["a"], np.arange(6).reshape(2, 3))
    assert found["b"].dtype == np.int64
    header = b'{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\xc0")
    np.testing.assert_array_equal(read_state_dict(path)["x"], np.array([1.0, -2.0], np.float32))
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(WeightsError, match="safetensors"):
        read_state_dict(path)


def test_what_is_no_checkpoint_says_so(tmp_path):
    path = tmp_path / "a.pth"
    for content in (b"", b"hello world", pickle.dumps({"w": 1})):
        path.write_bytes(content)
        with pytest.raises(WeightsError):
            read_state_dict(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("header_offset", 2**31),  # of a member: "negative seek value"
        ("extract_version", 110),  # "zip file version 11.0"
        ("flag_bits", 1),  # asks for a password
        ("compress_type", 77),
        ("CRC", 1),
    ],
)
def test_archives_that_zipfile_raises_anything_for(tmp_path, name, value):
    file = tmp_path / "model.pt"
    member = zipfile.ZipInfo("m/data.pkl")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, b"\x80\x02}.")
        setattr(archive.filelist[0], name, value)
    for read in (read_checkpoint, read_state_dict, open_state_dict):
        with pytest.raises(WeightsError):
            read(file)
    assert not is_torchscript(file)
