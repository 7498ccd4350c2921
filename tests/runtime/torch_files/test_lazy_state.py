import json

import numpy as np
import pytest
from safetensors.numpy import save

from wordreel.errors import WeightsCorrupt, WeightsError
from wordreel.runtime.torch_files.lazy_state import open_safetensors


def safetensors(entries, data):
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + data


def test_bfloat16_is_read_as_float32(tmp_path):
    exact = np.array([[1.0, -2.5], [3.25, 0.0]], np.float32)  # bfloat16 holds these exactly
    halves = (exact.view(np.uint32) >> 16).astype("<u2").tobytes()
    entries = {
        "other": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "brain": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [4, 12]},
    }
    file = tmp_path / "model.safetensors"
    file.write_bytes(safetensors(entries, np.float32(7).tobytes() + halves))
    state = open_safetensors(file)
    np.testing.assert_array_equal(state["brain"], exact)
    assert state["brain"].dtype == np.float32
    assert state["other"].tolist() == [7.0]


def test_types_that_numpy_lacks_are_named(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(
        safetensors({"tiny": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, bytes(2))
    )
    with pytest.raises(WeightsError, match="tiny"):
        open_safetensors(file)["tiny"]


def test_damaged_and_repeated_parts(tmp_path):
    one, two = tmp_path / "1.safetensors", tmp_path / "2.safetensors"
    for path in (one, two):
        path.write_bytes(save({"a": np.ones(3, np.float32)}))
    with pytest.raises(WeightsError, match="repeats a"):
        open_safetensors(one, two)
    two.write_bytes(two.read_bytes()[:-2])
    with pytest.raises(WeightsCorrupt, match="not a complete safetensors file"):
        open_safetensors(two)
