import numpy as np
import pytest
from tests.lab.datasets.trees.published import IDS, TEST, write_moee_lsmdc, write_moee_msrvtt

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees import open_tree
from wordreel.types import Absent


def test_msrvtt_reads_back(tmp_path):
    said = write_moee_msrvtt(tmp_path / "data" / "data")
    tree = open_tree(tmp_path)
    assert (tree.kind, tree.dataset) == ("moee", "MSRVTT")
    assert tree.experts == ("audio", "face", "motion", "visual")
    for expert, values in said.items():
        for item in IDS:
            found = tree.read(expert, item)
            if expert == "face" and item in ("video1", "video2"):
                assert isinstance(found, Absent)
            else:
                assert np.array_equal(found.values, np.atleast_2d(values[item]))
    assert [item.id for item in tree.split("test").items] == list(TEST)
    assert [words.shape for words in tree.word_features("w2v", "video0")] == [(3, 4)]
    assert "raw captions" in {found.what for found in tree.missing}


def test_lsmdc_reads_back_by_row(tmp_path):
    said = write_moee_lsmdc(tmp_path / "data")
    tree = open_tree(tmp_path)
    assert (tree.kind, tree.dataset) == ("moee", "LSMDC")
    assert list(tree.ids("visual")) == ["train-0", "train-1", "test-0", "test-1"]
    assert np.array_equal(
        tree.read("visual", "test-1").values[0], said["resnet152-retrieval.npy.tensor.npy"][1]
    )
    assert np.array_equal(tree.read("motion", "train-1").values[0], said["X_flow.npy"][1])
    assert np.array_equal(tree.read("audio", "train-1").values, said["X_audio_train.npy"][1])
    assert np.array_equal(
        tree.read("audio", "test-0").values, said["X_audio_retrieval.npy.tensor.npy"][0, :2]
    )
    assert tree.read("face", "train-1") == Absent("no face: a vector of zeros in the file")
    assert "no_face" in tree.read("face", "test-1").reason
    assert len(tree.read("face", "test-0")) == 1
    assert isinstance(tree.read("visual", "test-2"), Absent)
    assert [item.id for item in tree.split("test").items] == ["test-0", "test-1"]
    assert tree.word_features("w2v", "test-1")[0].shape == (4, 3)


def test_both_in_one_folder_must_be_told_apart(tmp_path):
    write_moee_lsmdc(tmp_path)
    write_moee_msrvtt(tmp_path)
    with pytest.raises(DatasetError, match="--dataset"):
        open_tree(tmp_path, "moee")
    assert open_tree(tmp_path, "moee", "lsmdc").dataset == "LSMDC"
