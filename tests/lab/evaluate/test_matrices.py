"""Similarity matrices from every kind of file, and files that must be refused."""

import importlib.util
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from wordreel.errors import HubnessError, UnsafePickle
from wordreel.lab.evaluate import matrices
from wordreel.lab.evaluate.matrices import read_counts, read_mask, read_matrix

SIMS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
MASK = np.array([[1, 1], [1, 0], [0, 1]])


class Attack:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


def write(path, content):
    path.write_bytes(content)
    return path


def saved(tmp_path, kind):
    path = tmp_path / f"sims.{kind}"
    if kind == "npy":
        np.save(path, SIMS)
    elif kind == "fortran.npy":
        np.save(path, np.asfortranarray(SIMS))
    elif kind == "npz":
        np.savez_compressed(path, anything=SIMS)
    elif kind == "safetensors":
        save_file({"x": SIMS}, path)
    elif kind == "mmt.npy":
        np.save(path, {"sims": SIMS, "query_masks": MASK})
    elif kind == "fork.npy":
        np.save(path, {"t2v_sims": SIMS, "query_masks": MASK})
    elif kind == "only.npy":
        np.save(path, {"scores": SIMS, "ids": np.arange(4), "about": "text"})
    else:
        path.write_bytes(pickle.dumps(SIMS, protocol=int(kind[-1])))
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "npy",
        "fortran.npy",
        "npz",
        "safetensors",
        "mmt.npy",
        "fork.npy",
        "only.npy",
        "pkl0",
        "pkl2",
        "pkl4",
        "pkl5",
    ],
)
def test_every_format_gives_the_same_matrix(tmp_path, kind):
    path = saved(tmp_path, kind)
    path = path.rename(tmp_path / "sims.pkl") if "pkl" in kind else path
    found = read_matrix(path)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, SIMS)


def test_content_counts_not_the_name(tmp_path):
    np.testing.assert_array_equal(read_matrix(write(tmp_path / "a.npy", pickle.dumps(SIMS))), SIMS)
    np.save(tmp_path / "b.npy", SIMS)
    np.testing.assert_array_equal(read_matrix((tmp_path / "b.npy").rename(tmp_path / "b.pkl")), SIMS)


@pytest.mark.parametrize("kind", ["npy", "safetensors"])
def test_files_are_mapped_and_cannot_be_changed(tmp_path, kind):
    found = read_matrix(saved(tmp_path, kind))
    assert isinstance(found, np.memmap) or not found.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1


def test_whole_numbers_become_real_ones(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.int16))
    assert read_matrix(tmp_path / "x.npy").dtype == np.float64


@pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")
def test_hdf5(tmp_path):
    import h5py

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["group/sims"] = SIMS
        file["group/other"] = SIMS + 1
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.h5", "group/other"), SIMS + 1)
    with pytest.raises(HubnessError, match="group/sims"):
        read_matrix(tmp_path / "x.h5")


@pytest.mark.parametrize("how", [{}, {"chunks": (3, 2)}, {"compression": "gzip"}, {"maxshape": (None, 3)}])
def test_hdf5_of_every_storage(tmp_path, monkeypatch, how):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("sims", data=SIMS, **how)
        file.create_dataset("mask", data=MASK)
        file.create_dataset("none", shape=(0, 3), dtype="f4")
        file["number"] = 3.0
    np.testing.assert_array_equal(read_matrix(tmp_path / "x.h5"), SIMS)
    monkeypatch.setattr(matrices, "MAX_BYTES", 12)
    with pytest.raises(HubnessError, match="48 bytes in one array; the limit is 12"):
        read_matrix(tmp_path / "x.h5")


def test_bfloat16_is_read(tmp_path):
    header = b'{"x":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    values = np.array([[0.5, 1], [-2, 0]], np.float32)
    content = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    path = write(tmp_path / "x", len(header).to_bytes(8, "little") + header + content)
    np.testing.assert_array_equal(read_matrix(path), values)
    path.write_bytes(path.read_bytes().replace(b'"BF16"', b'"C64" ').replace(b"[2,2]", b"[1,1]"))
    with pytest.raises(HubnessError, match="x has the type C64, which is not read"):
        read_matrix(path)


@pytest.mark.skipif(importlib.util.find_spec("h5py") is not None, reason="h5py is installed")
def test_hdf5_without_h5py(tmp_path):
    with pytest.raises(HubnessError, match="pip install h5py"):
        read_matrix(write(tmp_path / "x.h5", b"\x89HDF\r\n\x1a\n" + bytes(100)))


def test_keys(tmp_path):
    np.savez(tmp_path / "two.npz", a=SIMS, b=SIMS + 1)
    with pytest.raises(HubnessError, match=r"a \[4, 3\], b \[4, 3\]; choose one with --key"):
        read_matrix(tmp_path / "two.npz")
    np.testing.assert_array_equal(read_matrix(tmp_path / "two.npz", "b"), SIMS + 1)
    with pytest.raises(HubnessError, match="no array 'c'; it holds a"):
        read_matrix(tmp_path / "two.npz", "c")
    np.save(tmp_path / "none.npy", {"about": "nothing"})
    with pytest.raises(HubnessError, match="holds no arrays"):
        read_matrix(tmp_path / "none.npy")


def test_masks_and_counts(tmp_path):
    np.testing.assert_array_equal(read_mask(saved(tmp_path, "mmt.npy")), MASK)
    np.testing.assert_array_equal(read_mask(write(tmp_path / "m.pkl", pickle.dumps(MASK))), MASK)
    for text in ("3 1\n2\n", "[3, 1, 2]", "3,1,2"):
        assert read_counts(str(write(tmp_path / "c.txt", text.encode()))).tolist() == [3, 1, 2]
    np.save(tmp_path / "c.npy", np.array([3, 1, 2]))
    assert read_counts(str(tmp_path / "c.npy")).tolist() == [3, 1, 2]
    with pytest.raises(HubnessError, match="one whole number per video"):
        read_counts(str(write(tmp_path / "c.txt", b"3 x")))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        (np.zeros((2, 2), complex), "complex128"),
        (np.array([["a"]]), "<U1"),
        (np.zeros((2, 2), bool), "bool"),
        (np.array([[0, 1], [np.nan, 0]]), "row 1, column 0 is nan"),
        (np.array([[0, np.inf]], np.float32), "row 0, column 1 is inf"),
        (np.array([[-np.inf]], np.float16), "is -inf"),
    ],
)
@pytest.mark.parametrize("kind", ["npy", "pkl", "npz"])
def test_what_is_no_similarity_matrix(tmp_path, array, message, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, array)
    elif kind == "pkl":
        path.write_bytes(pickle.dumps(array))
    else:
        np.savez(path, sims=array)
    with pytest.raises(HubnessError, match=message):
        read_matrix(path)


def test_a_hostile_pickle_does_nothing(tmp_path):
    mark = tmp_path / "mark"
    for attack in (Attack(mark), {"sims": SIMS, "x": Attack(mark)}, [SIMS, Attack(mark)]):
        with pytest.raises(UnsafePickle, match=r"x\.pkl.*it was not loaded; save the array as \.npy"):
            read_matrix(write(tmp_path / "x.pkl", pickle.dumps(attack)))
        np.save(tmp_path / "x.npy", np.array(attack, dtype=object))
        with pytest.raises(UnsafePickle, match="not loaded"):
            read_matrix(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", sims=np.array([Attack(mark)], dtype=object))
    with pytest.raises(HubnessError, match="cannot be read"):
        read_matrix(tmp_path / "x.npz")
    assert not mark.exists()


def test_damaged_and_foreign_files(tmp_path):
    content = saved(tmp_path, "npy").read_bytes()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("readme.txt", "hello")
    for name, data in {
        "cut.npy": content[:-1],
        "head.npy": content[:30],
        "huge.npy": content.replace(b"(4, 3)", b"(4, 3" + b"0" * 12 + b")"),
        "cut.npz": saved(tmp_path, "npz").read_bytes()[:-10],
        "other.npz": zipped.getvalue(),
        "cut.pkl": pickle.dumps(SIMS)[:-5],
        "list.pkl": pickle.dumps([1, 2]),
        "text.npy": b"1 2 3\n",
        "nothing.npy": b"",
        "bad.safetensors": b"\x02\0\0\0\0\0\0\0{",
    }.items():
        with pytest.raises((HubnessError, UnsafePickle), match=name):
            read_matrix(write(tmp_path / name, data))
    with pytest.raises(HubnessError, match="there is no file"):
        read_matrix(tmp_path / "missing.npy")
    with pytest.raises(HubnessError, match="there is no file"):
        read_matrix(tmp_path)


@pytest.mark.parametrize("legacy", [False, True])
def test_tensors_saved_by_torch(tmp_path, legacy):
    torch = pytest.importorskip("torch")
    path = tmp_path / "sims.pt"
    torch.save(torch.from_numpy(SIMS), path, _use_new_zipfile_serialization=not legacy)
    np.testing.assert_array_equal(read_matrix(path), SIMS)


def test_counts_that_no_number_holds(tmp_path):
    path = tmp_path / "counts.txt"
    path.write_text("3 " + "9" * 400)
    with pytest.raises(HubnessError, match="one whole number per video"):
        read_counts(str(path))
