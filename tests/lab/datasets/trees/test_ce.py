import math

import numpy as np
import pytest
from tests.lab.datasets.trees.published import (
    CAPTIONS,
    IDS,
    TEST,
    TEXTS,
    dump,
    write_audiocaps,
    write_ce,
    write_hickle,
    write_list,
    write_miech,
)

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees import open_tree
from wordreel.lab.datasets.trees.ce import open_ce
from wordreel.types import Absent, Track


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_every_expert_reads_back_as_it_was_written(tmp_path, protocol):
    said = write_ce(tmp_path / "MSRVTT", protocol)
    words = said.pop("words")
    tree = open_tree(tmp_path / "MSRVTT")
    assert (tree.kind, tree.dataset) == ("ce", "MSRVTT")
    assert set(tree.experts) == set(said)
    for expert, values in said.items():
        assert list(tree.ids(expert)) == list(values)
        for item in IDS:
            value, found = values.get(item), tree.read(expert, item)
            lost = value is None or (isinstance(value, float) and math.isnan(value))
            if lost or not np.size(value) or np.isnan(value).all():
                assert isinstance(found, Absent), (expert, item)
                assert found.reason
            else:
                assert isinstance(found, Track)
                assert np.array_equal(found.values, np.atleast_2d(value).astype("f4"))
    for item in IDS:
        read = tree.word_features("openai", item)
        assert [np.array_equal(a, b) for a, b in zip(read, words[item], strict=True)] == [True, True]


def test_splits_and_captions(tmp_path):
    write_ce(tmp_path / "MSRVTT")
    tree = open_tree(tmp_path / "MSRVTT" / "structured-symlinks", "ce", "MSRVTT")
    assert set(tree.splits) == {"full-train", "full-test", "jsfusion-train", "jsfusion-val"}
    test = tree.split("test")
    assert test.name == "full-test"
    assert test.captions == {item: TEXTS[item] for item in TEST}
    assert tree.split("jsfusion-val").captions == {"video3": [TEXTS["video3"][1]]}
    assert test.missing == ()
    with pytest.raises(DatasetError, match="full-train"):
        tree.split("nonsense")


def test_nothing_is_read_before_it_is_asked_for_and_then_once(tmp_path, monkeypatch):
    from wordreel.lab.datasets import array_files

    write_ce(tmp_path / "MSRVTT")
    read = []
    real = array_files.read_value
    monkeypatch.setattr(array_files, "read_value", lambda path: (read.append(path.name), real(path))[1])
    tree = open_tree(tmp_path / "MSRVTT")
    assert tree.experts
    assert tree.splits
    assert read == []
    tree.read("audio", "video0")
    tree.read("audio", "video1")
    assert read == ["Audio_MSRVTT_new.pickle"]


def test_what_is_missing_is_said_with_where_it_was_looked_for(tmp_path):
    write_ce(tmp_path / "MSRVTT")
    root = tmp_path / "MSRVTT" / "structured-symlinks"
    assert open_ce(tmp_path / "MSRVTT").missing == ()
    (root / "aggregated_face_feats" / "facefeats-avg.pickle").unlink()
    (root / "raw-captions.pkl").unlink()
    (root / "jsfusion_val_caption_idx.pkl").unlink()
    missing = {found.what: found for found in open_ce(tmp_path / "MSRVTT").missing}
    assert set(missing) == {
        "features of face",
        "raw captions",
        "which caption of each video counts in jsfusion-val",
    }
    assert missing["raw captions"].looked == root / "raw-captions.pkl"
    assert all(found.without for found in missing.values())


def test_the_names_that_other_datasets_have_for_the_same_experts(tmp_path):
    root = tmp_path / "DiDeMo" / "structured-symlinks"
    names = {
        "aggregated_audio_feats/vggish-audio-raw.pickle": "audio",
        "aggregated_speech_feats/stt_w2v.pickle": "speech",
        "aggregated_ocr_feats/ocr-feats.pkl": "ocr",
        "aggregated_facefeats_25fps_256px_stride1/face-avg.pickle": "face",
        "aggregated_imagenet_25fps_256px_stride1/senet154-avg-logits.pickle": "imagenet.senet154.0.logits",
        "aggregated_r2p1d_30fps_256px_stride16_offset0/r2p1d-ig65m-avg.pickle": "r2p1d.r2p1d-ig65m.0",
        "aggregated_audio_feats/my-own.pickle": "audio.my-own",
    }
    for number, name in enumerate(names):
        dump(root / name, {"a.b": np.full(2, number)})
    (root / "val_list.txt").write_text("12_a.b.mov\n34_c.avi")
    tree = open_tree(tmp_path / "DiDeMo")
    for number, (_, expert) in enumerate(names.items()):
        assert tree.read(expert, "a.b").values[0, 0] == number
    assert [item.id for item in tree.split("val").items] == ["12_a", "34_c"]


def test_numbers_and_bytes_as_ids(tmp_path):
    root = tmp_path / "X" / "structured-symlinks"
    dump(root / "aggregated_audio" / "vggish-raw.pickle", {7: np.ones(2), b"b": np.zeros(2)})
    tree = open_tree(tmp_path / "X")
    assert list(tree.ids("audio")) == ["7", "b"]
    assert tree.read("audio", "7").values.tolist() == [[1, 1]]


def test_a_hickle_file_reads_like_the_pickle(tmp_path):
    pytest.importorskip("h5py")
    root = tmp_path / "QuerYD" / "structured-symlinks"
    dump(root / "raw_captions_combined_filtered.pkl", CAPTIONS)
    values = {"video0": np.ones((2, 3), "f4"), "video1": np.zeros((0, 3), "f4"), "video2": float("nan")}
    write_hickle(root / "aggregated_audio" / "vggish-raw.hickle", values)
    tree = open_tree(tmp_path / "QuerYD")
    assert tree.read("audio", "video0").values.tolist() == values["video0"].tolist()
    assert isinstance(tree.read("audio", "video1"), Absent)
    assert tree.read("audio", "video2") == Absent("NaN in the file")
    assert tree.lists.captions("video1")[0].text == TEXTS["video1"][0]


def test_audiocaps_as_the_code_of_audio_retrieval_has_it(tmp_path):
    pytest.importorskip("h5py")
    write_audiocaps(tmp_path / "AudioCaps")
    tree = open_tree(tmp_path / "AudioCaps")
    assert tree.experts == ("audio", "vggsound")
    assert set(tree.splits) == {"train", "val", "test"}
    captions = tree.split("test").captions
    assert list(captions) == ["clip0000006", "clip0000007", "clip0000008"]
    assert [len(texts) for texts in captions.values()] == [5, 5, 5]
    assert tree.read("vggsound", "clip0000007").values.shape == (4, 5)
    assert [len(tree.word_features("w2v", f"clip000000{n}")) for n in (0, 7)] == [1, 5]


@pytest.mark.parametrize(
    ("dataset", "file"),
    [
        ("QuerYD", "raw_captions_combined_filtered.pkl"),
        ("QuerYDSegments", "split_raw_captions_filtered.pkl"),
    ],
)
def test_queryd_captions_lie_one_folder_deeper(tmp_path, dataset, file):
    root = tmp_path / dataset / "structured-symlinks"
    dump(root / "aggregated_audio" / "vggish-raw.pickle", {item: np.ones(2) for item in IDS})
    dump(root / "structured-symlinks" / file, CAPTIONS)
    write_list(root / "test_list.txt", TEST)
    for tree in (open_tree(tmp_path / dataset), open_tree(root)):
        assert tree.dataset == dataset
        assert tree.split("test").captions == {item: TEXTS[item] for item in TEST}
        assert "raw captions" not in {missing.what for missing in tree.missing}


def test_vatex_word_features_lie_in_a_folder_with_a_hyphen(tmp_path):
    root = tmp_path / "VaTeX" / "structured-symlinks"
    dump(root / "aggregated_audio" / "vggish-raw.pickle", {item: np.ones(2) for item in IDS})
    dump(root / "text-embeddings" / "w2v.pkl", {"video0": [np.ones((3, 4)), np.zeros((2, 4))]})
    words = open_tree(tmp_path / "VaTeX").word_features("w2v", "video0")
    assert [rows.shape for rows in words] == [(3, 4), (2, 4)]


def test_1k_b_reads_its_own_face_and_audio(tmp_path):
    said = write_ce(tmp_path / "MSRVTT")
    root = tmp_path / "MSRVTT" / "structured-symlinks"
    write_miech(root)
    tree = open_tree(tmp_path / "MSRVTT")
    other = tree.for_split("miech-test")
    assert other is tree.for_split("miech-train")
    assert tree.for_split("full-test") is tree
    assert np.array_equal(tree.read("face", "video0").values[0], said["face"]["video0"])
    for number, expert in enumerate(("face", "audio", "antoine-rgb", "flow")):
        assert other.read(expert, "video0").values.tolist() == [[number] * 128]
        assert other.source(expert).startswith("antoine/")
    assert np.array_equal(other.read("speech", "video0").values, said["speech"]["video0"])
    assert other.dataset == "MSRVTT-1k-B"
    assert other.split("miech-test").captions == {"video3": TEXTS["video3"]}


def test_1k_b_without_its_files_has_no_face_rather_than_another(tmp_path):
    write_ce(tmp_path / "MSRVTT")
    root = tmp_path / "MSRVTT" / "structured-symlinks"
    write_list(root / "test_list_miech.txt", IDS[3:])
    tree = open_tree(tmp_path / "MSRVTT").for_split("miech-test")
    assert not {"face", "audio"} & set(tree.experts)
    missing = {found.what: found.looked for found in tree.missing}
    assert missing["features of face"] == root / "antoine" / "facefeats-clone.pickle"
    assert missing["features of audio"] == root / "antoine" / "audio_features.pickle"
