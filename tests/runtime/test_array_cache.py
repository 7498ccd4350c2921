import numpy as np

from wordreel.runtime.mapped_arrays import cached_arrays


def test_computed_once_then_read(tmp_path):
    calls = []

    def make():
        calls.append(1)
        return {"a": np.arange(6, dtype=np.float32).reshape(2, 3)}

    first, second = cached_arrays(tmp_path, "k", make), cached_arrays(tmp_path, "k", make)
    assert len(calls) == 1
    np.testing.assert_array_equal(first["a"], second["a"])
    cached_arrays(tmp_path, "other", make)
    assert len(calls) == 2


def test_a_damaged_file_is_computed_again(tmp_path):
    cached_arrays(tmp_path, "k", lambda: {"a": np.zeros(3, np.float32)})
    (tmp_path / "derived" / "k.safetensors").write_bytes(b"damaged")
    assert cached_arrays(tmp_path, "k", lambda: {"a": np.ones(3, np.float32)})["a"].tolist() == [1, 1, 1]
    assert cached_arrays(tmp_path, "k", dict)["a"].tolist() == [1, 1, 1]


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "derived").write_text("a file where a folder should be")
    assert cached_arrays(tmp_path, "k", lambda: {"a": np.ones(1, np.float32)})["a"].tolist() == [1]
