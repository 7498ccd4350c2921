"""The three ages of hickle files, written by hand as the package writes them."""

import numpy as np
import pytest

from wordreel.errors import DatasetError
from wordreel.lab.datasets.hdf5 import read_hickle

h5py = pytest.importorskip("h5py")


def version3(file):
    data = file.create_group("data_0")
    data.attrs["type"] = np.array(["<class 'dict'>"], object)
    for key, value in (("v1", np.arange(6.0).reshape(2, 3)), ("a/b", np.ones(2)), ("v2", np.nan)):
        item = data.create_group(f"'{key}'")
        item.attrs["type"] = np.array(["dict_item"], object)
        item["data_0"] = value
    item = data.create_group("'list'")
    item.attrs["type"] = np.array(["dict_item"], object)
    inner = item.create_group("data_0")
    inner.attrs["type"] = np.array(["<class 'list'>"], object)
    inner["data_0"], inner["data_1"] = np.ones(2), np.zeros(3)
    item = data.create_group("'text'")
    item.attrs["type"] = np.array(["dict_item"], object)
    item.create_dataset("data_0", data=np.array(["a man", "sings"], object), dtype=h5py.string_dtype())


def version4(file):
    data = file.create_group("data")
    data.attrs["base_type"] = b"dict"
    for key, value in (("v1", np.arange(6.0).reshape(2, 3)), (r"a\\b", np.ones(2)), ("v2", np.nan)):
        item = data.create_group(f"'{key}'")
        item.attrs["base_type"] = b"dict_item"
        item.attrs["key_type"] = b"cos\nsystem\n(S'true'\ntR."  # never looked at
        item["data"] = value
    item = data.create_group("'list'")
    item.attrs["base_type"] = b"dict_item"
    inner = item.create_group("data")
    inner.attrs["base_type"] = b"list"
    inner["data_0"], inner["data_1"] = np.ones(2), np.zeros(3)
    item = data.create_group("'text'")
    item.attrs["base_type"] = b"dict_item"
    item.create_dataset("data", data=np.array(["a man", "sings"], object), dtype=h5py.string_dtype())


def version5(file):
    data = file.create_group("data")
    for number, (key, value) in enumerate((("v1", np.arange(6.0).reshape(2, 3)), ("v2", np.nan))):
        data[f'"{key}"'] = value
        data[f'"{key}"'].attrs["key_base_type"] = b"str"
        data[f'"{key}"'].attrs["key_idx"] = number
    pair = data.create_group("data2")
    pair.attrs["key_base_type"] = b"key_value"
    pair["data0"] = np.frombuffer(b"a/b", "S1").reshape(1, 3)
    pair["data0"].attrs["str_type"] = b"str"
    pair["data1"] = np.ones(2)
    inner = data.create_group('"list"')
    inner["data0"], inner["data1"] = np.ones(2), np.zeros(3)
    words = data.create_group('"text"')
    for number, word in enumerate((b"a man", b"sings")):
        words[f"data{number}"] = np.frombuffer(word, "S1").reshape(1, -1)
        words[f"data{number}"].attrs["str_type"] = b"str"


@pytest.mark.parametrize("write", [version3, version4, version5])
def test_all_ages_give_the_same(tmp_path, write):
    with h5py.File(tmp_path / "a.hickle", "w") as file:
        write(file)
    found = read_hickle(tmp_path / "a.hickle", 2**20)
    assert set(found) == {"v1", "v2", "a/b", "list", "text"}
    assert found["v1"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.isnan(found["v2"])
    assert found["a/b"].tolist() == [1, 1]
    assert [part.tolist() for part in found["list"]] == [[1, 1], [0, 0, 0]]
    assert found["text"] == ["a man", "sings"]


def bomb(file):
    file.create_dataset("data_0", (2**40,), "f8", chunks=(2**20,), compression="gzip")


def outward_link(file):
    file["data_0"] = h5py.ExternalLink("/etc/hosts", "/")


def soft_loop(file):
    group = file.create_group("data_0")
    group.attrs["type"] = np.array(["<class 'list'>"], object)
    group["data_0"] = h5py.SoftLink("/data_0")


def hard_loop(file):
    group = file.create_group("data_0")
    group.attrs["type"] = np.array(["<class 'list'>"], object)
    group["data_0"] = group


def borrowed_bytes(file):
    file.create_dataset("data_0", (10,), "u1", external=[("/etc/passwd", 0, 10)])


def nothing(file):
    file["other"] = 1


@pytest.mark.parametrize("write", [bomb, outward_link, soft_loop, hard_loop, borrowed_bytes, nothing])
def test_hostile_files_are_refused(tmp_path, write):
    with h5py.File(tmp_path / "a.hickle", "w") as file:
        write(file)
    with pytest.raises(DatasetError, match=r"a\.hickle"):
        read_hickle(tmp_path / "a.hickle", 2**30)


def test_many_arrays_are_too_much_together(tmp_path):
    with h5py.File(tmp_path / "a.hickle", "w") as file:
        group = file.create_group("data_0")
        group.attrs["type"] = np.array(["<class 'list'>"], object)
        for number in range(20):
            group.create_dataset(f"data_{number}", (1000,), "f8")
    with pytest.raises(DatasetError, match="larger together"):
        read_hickle(tmp_path / "a.hickle", 100_000)


def test_a_cut_off_file(tmp_path):
    path = tmp_path / "a.hickle"
    with h5py.File(path, "w") as file:
        version5(file)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DatasetError, match=r"a\.hickle"):
        read_hickle(path, 2**30)
