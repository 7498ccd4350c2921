"""The sentence encoder in NumPy against the graph, from the same file."""

import numpy as np
import onnx
import pytest
from tests.nets.test_bert import HEADS, PLACES, VOCABULARY, tiny_weights

from wordreel.errors import WeightsCorrupt
from wordreel.nets import bert_numpy
from wordreel.nets.bert import build
from wordreel.nets.bert_numpy import NumpyBert
from wordreel.nets.onnx_arrays import map_arrays
from wordreel.nets.runtime import Network


@pytest.fixture
def file(tmp_path):
    onnx.save(build(tiny_weights(), HEADS), tmp_path / "network.onnx")
    return tmp_path / "network.onnx"


@pytest.mark.parametrize("tokens", [1, 2, PLACES])
@pytest.mark.parametrize("most", [1, 50, 2**18])
def test_equals_the_graph(file, tokens, most, monkeypatch):
    monkeypatch.setattr(bert_numpy, "ONE_THREAD", most)
    ids = np.random.default_rng(tokens).integers(0, VOCABULARY, tokens)
    graph = Network(file)(input_ids=ids[None], attention_mask=np.ones((1, tokens), np.int64))
    np.testing.assert_allclose(NumpyBert(file, HEADS)(ids.tolist()), graph["sentences"][0], atol=1e-6)


def test_mapped_arrays_are_those_that_onnx_reads(file):
    stored = [onnx.numpy_helper.to_array(value) for value in onnx.load(file).graph.initializer if value.dims]
    expected = [array for array in stored if array.dtype == np.float32]
    found = map_arrays(file)
    assert len(found) == len(expected) > 30
    for mapped, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mapped.copy(), array)
    np.testing.assert_array_equal(found[0].rows([3, 0, 3]), expected[0][[3, 0, 3]])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_file_that_ends_early_is_damaged(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: max(1, int(len(content) * share))])
    with pytest.raises(WeightsCorrupt, match=r"sentence encoder|not a network"):
        NumpyBert(file, HEADS)


@pytest.mark.parametrize("content", [b"", b"\xff" * 99, b"\x3a\x03\x2a\x01\x0b", b"\x3a\x02\x28\x01"])
def test_other_files_are_refused(file, content):
    file.write_bytes(content)
    with pytest.raises(WeightsCorrupt, match=r"sentence encoder|not a network"):
        NumpyBert(file, HEADS)
