import builtins
import io
import os
import pickle
import pickletools
import struct
import subprocess
from collections import OrderedDict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wordreel.errors import NextStep, UnsafePickle
from wordreel.runtime.numpy_pickle import load, loads, read_numpy_pickle


class Calls:
    """Pickles to a call of `function(*arguments)`."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=10,
)


@given(value=plain, protocol=st.integers(0, 5))
def test_plain_containers_come_back_as_they_were(value, protocol):
    assert loads(pickle.dumps(value, protocol)) == value


@given(
    array=hnp.arrays(
        st.sampled_from(["f4", "<f8", ">f4", "i8", "u1", "?", "c8", "S3", "U2"]),
        hnp.array_shapes(min_dims=0, min_side=0),
    ),
    protocol=st.integers(0, 5),
    fortran=st.booleans(),
)
def test_arrays_come_back_as_they_were(array, protocol, fortran):
    array = np.asfortranarray(array) if fortran and array.ndim else array
    found = loads(pickle.dumps({"array": array}, protocol))["array"]
    assert type(found) is np.ndarray
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


def test_scalars_dtypes_ordered_and_shared_things():
    shared = [1, 2]
    value = {
        "s": np.float32(1.5),
        "i": np.int64(7),
        "o": OrderedDict(b=1, a=2),
        "x": shared,
        "y": shared,
        "d": np.dtype("f4"),
    }
    for protocol in range(6):
        found = loads(pickle.dumps(value, protocol))
        assert found == value
        assert type(found["s"]) is np.float32
        assert list(found["o"]) == ["b", "a"]
        assert found["x"] is found["y"]


def test_a_list_that_holds_itself():
    loop: list = []
    loop.append(loop)
    found = loads(pickle.dumps(loop))
    assert found[0] is found


def test_old_numpy_names_and_latin1_strings():
    # A protocol-2 pickle as Python 2 with NumPy 1 wrote it: bytes as latin1 strings, numpy.core.multiarray.
    raw = np.array([1.5, -2.0], "<f4").tobytes()
    data = (
        b"\x80\x02}U\x01w"
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U" + bytes([len(raw)]) + raw + b"tbs."
    )
    pickletools.dis(data, io.StringIO())  # well formed
    np.testing.assert_array_equal(loads(data, encoding="latin1")["w"], np.array([1.5, -2.0], np.float32))


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("echo owned",), "system"),
        (subprocess.call, (["true"],), "call"),
        (builtins.eval, ("1 + 1",), "eval"),
        (builtins.getattr, (1, "real"), "getattr"),
        (builtins.__import__, ("os",), "__import__"),
        (np.load, ("/etc/passwd",), "numpy.load"),
        (np.fromfile, ("/etc/passwd",), "fromfile"),
        (np.ctypeslib.load_library, ("libc", "/"), "load_library"),
        (io.open, ("/etc/passwd",), "open"),
        (set, ([1],), "set"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": [x]}, lambda x: Calls(OrderedDict, [(1, x)])])
def test_other_names_are_refused_by_name(function, arguments, name, protocol, wrap):
    with pytest.raises(UnsafePickle, match=name):
        loads(pickle.dumps(wrap(Calls(function, *arguments)), protocol))


def test_the_advice_depends_on_what_is_read():
    refused = pickle.dumps(Calls(os.getcwd))
    with pytest.raises(UnsafePickle, match=r"not loaded; ask for the weights in safetensors format"):
        loads(refused)
    with pytest.raises(UnsafePickle, match=r"not loaded; ask for the captions$"):
        loads(refused, next_step=NextStep("ask for the captions"))


def test_nothing_runs_before_the_refusal(tmp_path):
    target = tmp_path / "owned"
    with pytest.raises(UnsafePickle):
        loads(pickle.dumps([np.zeros(2), Calls(os.mkdir, str(target))]))
    assert not target.exists()


def test_dotted_names_do_not_reach_through():
    with pytest.raises(UnsafePickle, match="OrderedDict"):
        loads(b"\x80\x04\x8c\x0bcollections\x8c\x18OrderedDict.__init__.get\x93.")


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
DTYPE = b"cnumpy\ndtype\nX\x02\x00\x00\x00%sK\x00K\x01\x87R"
HUGE = b"J\x00\x00\x00\x40J\x00\x00\x00\x40\x86"
HOSTILE = {
    "change a function": b"cnumpy\ndtype\nN}X\x08\x00\x00\x00__code__K\x01s\x86b.",
    "change a type": b"cnumpy\nndarray\n}X\x01\x00\x00\x00aK\x01sb.",
    "make an ndarray directly": b"cnumpy\nndarray\n)\x81.",
    "call ndarray": b"cnumpy\nndarray\n)R.",
    "a bare name": b"cnumpy\nndarray\n.",
    "array without content": ARRAY + b".",
    "huge shape": ARRAY + b"(K\x01" + HUGE + DTYPE % b"f8" + b"\x89C\x00tb.",
    "negative shape": ARRAY + b"(K\x01J\xff\xff\xff\xff\x85" + DTYPE % b"f4" + b"\x89C\x04aaaatb.",
    "pointers as bytes": ARRAY + b"(K\x01K\x01\x85" + DTYPE % b"O8" + b"\x89C\x08aaaaaaaatb.",
    "too few objects": ARRAY + b"(K\x01K\x02\x85" + DTYPE % b"O8" + b"\x89]K\x01atb.",
    "dtype that is text": ARRAY + b"(K\x01K\x01\x85X\x02\x00\x00\x00f4\x89C\x04aaaatb.",
    "strange dtype": DTYPE % b"M8" + b".",
    "zeros of any length": b"cbuiltins\nbytes\nJ\x00\x00\x00\x40\x85R.",
    "huge bytearray": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"abc.",
    "huge bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**50) + b"abc.",
    "other codec": b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
    "deep nest": b"]" + b"]" * 5000 + b"a" * 5000 + b".",
    "extension registry": b"\x82\x01.",
    "persistent id": b"Pperson\n.",
    "empty": b"",
    "noise": b"not a pickle",
}


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in HOSTILE.items()])
def test_hostile_streams_are_refused(body):
    with pytest.raises(UnsafePickle):
        loads(body)


@pytest.mark.parametrize(
    "body", [b"\x80\x04\x95" + struct.pack("<Q", 2**50) + b"K\x07.", b"\x80\x02K\x07r\xff\xff\xff\x7f."]
)
def test_a_far_memo_index_and_a_huge_frame_are_refused(body):
    with pytest.raises(UnsafePickle, match="damaged"):
        loads(body)


def test_doubling_structures_take_linear_time():
    value: list = []
    for _ in range(100):
        value = [value, value]
    found = loads(pickle.dumps(value))
    assert found[0] is found[1]


def test_keys_whose_hash_would_take_for_ever():
    key: tuple = ()
    for _ in range(60):
        key = (key, key)
    body = pickle.dumps(key, 2)[:-1]
    for closing in (b"}" + body[2:] + b"Ns.", b"}(" + body[2:] + b"Nu.", b"(" + body[2:] + b"Nd."):
        with pytest.raises(UnsafePickle, match="keys"):
            loads(closing)


@given(data=st.binary(max_size=60), place=st.integers(0, 400), value=st.integers(0, 255))
def test_noise_never_escapes(data, place, value):
    whole = bytearray(pickle.dumps({"a": np.arange(4), "b": [OrderedDict(x=1)]}))
    whole[place % len(whole)] = value
    for body in (data, b"\x80\x04" + data, bytes(whole)):
        with suppress(UnsafePickle):
            loads(body)


def test_size_limits(tmp_path):
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(np.zeros(1000)))
    assert len(load(path)) == 1000
    with pytest.raises(UnsafePickle, match="more than the 100"):
        load(path, max_bytes=100)


def test_numpy_files_of_objects(tmp_path):
    path = tmp_path / "a.npy"
    np.save(
        path, np.array({"conv1": {"weights": np.arange(6.0).reshape(2, 3)}}, dtype=object), allow_pickle=True
    )
    found = read_numpy_pickle(path, encoding="latin1")
    np.testing.assert_array_equal(found["conv1"]["weights"], np.arange(6.0).reshape(2, 3))
    np.save(path, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    assert list(read_numpy_pickle(path)) == [{"a": 1}, None]
    np.save(path, np.zeros(3))
    with pytest.raises(UnsafePickle, match="plain"):
        read_numpy_pickle(path)
    np.save(path, np.array(Calls(os.getcwd), dtype=object), allow_pickle=True)
    with pytest.raises(UnsafePickle, match="getcwd"):
        read_numpy_pickle(path)


def test_keys_may_be_tuples_of_plain_values():
    value = {("a", 1): [np.zeros(2)], "b": {(0.5, None): (1, (2, 3))}}
    for protocol in range(6):
        assert str(loads(pickle.dumps(value, protocol))) == str(value)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|O', 'fortran_order': False, 'shape': (",  # its parser raises a TokenError
        b"{'descr': '|O', 'fortran_order': False, 'shape': (-1,), }",
        b"{'descr': [], 'shape': 1}",
        b"[" * 3000,
        b"\xff\xfe",
        b"",
    ],
)
def test_headers_of_numpy_files_that_are_none(tmp_path, header):
    file = tmp_path / "x.npy"
    file.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + pickle.dumps([1]))
    with pytest.raises(UnsafePickle, match="is not a NumPy file"):
        read_numpy_pickle(file)
