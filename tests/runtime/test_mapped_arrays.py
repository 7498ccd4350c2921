"""Mapped arrays are those that the safetensors package reads, and what it refuses is refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from wordreel.runtime.mapped_arrays import DTYPES, map_safetensors


def arrays():
    rng = np.random.default_rng(0)
    made = {code: (rng.random((3, 2)) * 100).astype(dtype) for code, dtype in DTYPES.items()}
    return {**made, "empty": np.zeros((0, 4), np.float32), "one": np.ones(1, np.float32)}


def test_the_arrays_are_those_of_the_package(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(save(arrays(), {"about": "ünïcode"}))
    about, found = map_safetensors(path)
    expected = load_file(str(path))
    assert about == {"about": "ünïcode"}
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
    assert not found["F32"].flags.writeable
    path.unlink()  # a file that is replaced stays as it was for those that have it
    np.testing.assert_array_equal(found["F64"], expected["F64"])


def file(header, data=b"\0" * 64):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(**changed):
    return {"x": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **changed}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x05",
        (2**60).to_bytes(8, "little") + b"{}",
        file(b"[" * 100_000),
        file(b"no json"),
        file(b"\xff\xff"),
        file([]),
        file({"x": None}),
        file({"__metadata__": 3, **entry()}),
        file(entry(dtype="BF16")),
        file(entry(dtype=[])),
        file(entry(shape=[2, 3])),
        file(entry(shape=[-2, -2])),
        file(entry(shape=[2.0, 2])),
        file(entry(shape=4)),
        file(entry(data_offsets=[0, 12])),
        file(entry(data_offsets=[-16, 0])),
        file(entry(data_offsets=[0])),
        file(entry(data_offsets=[64, 80])),
        file(entry(data_offsets=[True, 17])),
    ],
)
def test_what_is_no_whole_file_is_refused(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"header|metadata|described|bytes|Expecting|utf|empty"):
        map_safetensors(path)


def test_a_missing_file_cannot_be_read(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        map_safetensors(tmp_path / "absent")
