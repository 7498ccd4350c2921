import numpy as np
import pytest
from tests.lab.datasets.trees.published import dump, write_ce, write_teachtext

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees import open_tree


def test_features_words_teachers_and_masks_read_back(tmp_path):
    said = write_teachtext(tmp_path / "MSVD")
    tree = open_tree(tmp_path / "MSVD")
    assert (tree.kind, tree.dataset) == ("teachtext", "MSVD")
    assert set(tree.experts) == {"imagenet.resnext101_32x48d.0", "r2p1d.r2p1d-ig65m-kinetics.0"}
    for item in said["ids"]:
        found = tree.read("imagenet.resnext101_32x48d.0", item)
        assert np.array_equal(found.values[0], said["objects"][item])
        found = tree.read("r2p1d.r2p1d-ig65m-kinetics.0", item)  # kept under the name "vid…"
        assert np.array_equal(found.values[0], said["action"][said["names"][item]])
        for read, written in zip(tree.word_features("w2v", item), said["words"][item], strict=True):
            assert np.array_equal(read, written)
    assert list(tree.ids("r2p1d.r2p1d-ig65m-kinetics.0")) == list(said["ids"])
    assert tree.splits == ("test", "train", "val")
    assert tree.split("test").captions == {said["ids"][2]: ["a dog", "it barks"]}

    [teacher] = tree.teachers
    lesson = tree.teacher_embeddings(teacher, said["ids"][0])
    written = said["lessons"][said["ids"][0]]
    for expert in ("audio", "scene.densenet161.0"):
        assert np.array_equal(lesson.video[expert], written["vid_embds"][expert])
        assert np.array_equal(lesson.text[expert], np.stack(written["text_embds"][expert]))
    assert tree.teacher_embeddings(teacher, said["ids"][1]) is None
    assert tree.caption_mask("denoise-less100", said["ids"][0]).tolist() == [True, False]


def test_masks_in_a_folder_of_their_own(tmp_path):
    said = write_teachtext(tmp_path / "MSVD")
    root = tmp_path / "MSVD" / "high-quality" / "structured-symlinks"
    (root / "denoising_masks").mkdir()
    (root / "denoise-less100.pkl").rename(root / "denoising_masks" / "denoise-less100.pkl")
    tree = open_tree(tmp_path / "MSVD")
    assert tree.caption_mask("denoise-less100", said["ids"][0]).tolist() == [True, False]


def test_a_teacher_that_is_none(tmp_path):
    said = write_teachtext(tmp_path / "MSVD")
    root = tmp_path / "MSVD" / "high-quality" / "structured-symlinks"
    for number, entry in enumerate(({"vid_embds": 3}, [1], {"vid_embds": {"a": "b"}, "text_embds": {}})):
        dump(root / "teachers" / f"bad{number}.pkl", {said["ids"][0]: entry})
        with pytest.raises(DatasetError, match="no teacher's entry"):
            open_tree(tmp_path / "MSVD").teacher_embeddings(f"bad{number}", said["ids"][0])


def test_missing_experts_are_those_the_download_should_have(tmp_path):
    write_teachtext(tmp_path / "MSVD")
    missing = {found.what for found in open_tree(tmp_path / "MSVD").missing}
    assert "features of scene.densenet161.0" in missing
    assert "features of audio" not in missing  # MSVD has no sound
    assert "features of i3d.i3d.0" not in missing  # the better features never came with it


def test_two_layouts_in_one_folder_must_be_told_apart(tmp_path):
    write_teachtext(tmp_path / "MSVD")
    write_ce(tmp_path / "MSVD")
    with pytest.raises(DatasetError, match="teachtext and ce"):
        open_tree(tmp_path / "MSVD")
    assert open_tree(tmp_path / "MSVD", "ce").kind == "ce"
    assert "high-quality" in str(open_tree(tmp_path / "MSVD", "teachtext").root)
