"""Checkpoints whose arrays are read when they are used."""

import tracemalloc
import zipfile

import numpy as np
import pytest

from wordreel.errors import UnsafePickle, WeightsError
from wordreel.runtime.torch_files.lazy_state import LazyState
from wordreel.runtime.torch_files.lazy_torch import open_state_dict
from wordreel.runtime.torch_files.torch_file import read_state_dict

torch = pytest.importorskip("torch")


def save(path, **options):
    generator = torch.Generator().manual_seed(0)
    state = {f"w{n}": torch.randn(300, 400, generator=generator) for n in range(20)}
    state |= {"half": state["w0"].half(), "turned": state["w1"].T, "bf": state["w2"].bfloat16()}
    torch.save({"epoch": 3, "state_dict": state}, path, **options)
    return state


def test_arrays_equal_those_read_at_once(tmp_path):
    save(tmp_path / "a.pt")
    lazy, whole = open_state_dict(tmp_path / "a.pt"), read_state_dict(tmp_path / "a.pt")
    assert isinstance(lazy, LazyState)
    assert set(lazy) == set(whole)
    for key in whole:
        assert lazy[key].dtype == whole[key].dtype
        np.testing.assert_array_equal(lazy[key], whole[key])


def test_one_array_at_a_time_is_in_memory(tmp_path):
    save(tmp_path / "a.pt")
    size = 300 * 400 * 4
    tracemalloc.start()
    state = open_state_dict(tmp_path / "a.pt")
    total = sum(float(state[f"w{n}"].sum()) for n in range(20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(total)
    assert peak < 5 * size


def test_older_files_and_shared_storages_are_read_at_once(tmp_path):
    save(tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert len(open_state_dict(tmp_path / "old.pt")) == 23
    flat = torch.arange(60.0)
    torch.save({f"row{n}": flat[6 * n : 6 * n + 6] for n in range(10)}, tmp_path / "flat.pt")
    assert open_state_dict(tmp_path / "flat.pt")["row9"].tolist() == [54, 55, 56, 57, 58, 59]


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError):
        open_state_dict(path)
    at = len(whole) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with pytest.raises(UnsafePickle, match="damaged"):
        dict(open_state_dict(path))
    with zipfile.ZipFile(path, "w") as out, zipfile.ZipFile(tmp_path / "b.pt", "w"):
        out.writestr("a/data.pkl", b"\x80\x02]q\x00.")
    with pytest.raises(WeightsError, match="no named arrays"):
        open_state_dict(path)


def test_code_is_refused(tmp_path):
    torch.save({"model": torch.nn.Linear(2, 2)}, tmp_path / "a.pt")
    with pytest.raises(UnsafePickle, match=r"torch.nn.modules.linear"):
        open_state_dict(tmp_path / "a.pt")
