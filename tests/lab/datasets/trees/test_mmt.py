import builtins

import numpy as np
import pytest
from tests.lab.datasets.trees.published import IDS, TEST, TEXTS, write_mmt

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees import open_tree
from wordreel.types import Absent

h5py = pytest.importorskip("h5py")


def path_of(folder, item):
    return folder / "vid_feat_files" / "mult_h5" / "v" / "i" / "d" / f"{item}.h5"


def test_features_times_and_captions_read_back(tmp_path):
    said = write_mmt(tmp_path / "MSRVTT")
    tree = open_tree(tmp_path / "MSRVTT")
    assert (tree.kind, tree.dataset) == ("mmt", "MSRVTT")
    assert tree.experts == ("face", "rgb", "s3d", "speech")
    for number, item in enumerate(IDS):
        found = tree.read("s3d", item)
        assert np.array_equal(found.values, said[item]["features.s3d"])
        assert found.times.tolist() == [[0.0, 1.5], [1.5, 3.0], [-1.0, -1.0]]
        rgb = tree.read("rgb", item)
        assert np.array_equal(rgb.values, said[item]["features.rgb"].astype("f4"))
        assert np.allclose(rgb.times[:, 0], [0, 0.2, 0.4, 0.6])
        speech = tree.read("speech", item)
        if number == 1:
            assert speech == Absent("not in the .h5 file")
        else:
            assert np.array_equal(speech.values, said[item]["features.speech"].astype("f4"))
            assert (speech.times == -1).all()
        assert isinstance(tree.read("face", item), Absent) == bool(number % 2)
        told = tree.captions(item)
        assert told[0].words.tolist() == [[n + 0.5, n + 1.0] for n in range(4)]
        assert told[1].words is None
        assert [caption.text for caption in told] == TEXTS[item]
        assert (told[0].start, told[0].end) == (0.5, 4.0)
        assert told[1].start is None
    assert tree.split("jsfusion-val").captions == {item: [TEXTS[item][1]] for item in TEST}
    assert tree.read("s3d", "nobody") == Absent("no .h5 file")
    assert list(tree.ids("s3d")) == list(IDS)
    assert "features of vggish" in {found.what for found in tree.missing}


@pytest.mark.parametrize("expert", ["s3d", "vggish"])
def test_rows_without_stored_times_are_one_per_second(tmp_path, expert):
    write_mmt(tmp_path / "MSRVTT")
    with h5py.File(path_of(tmp_path / "MSRVTT", "video0"), "a") as file:
        for key in (f"features.{expert}", f"features_t.{expert}"):
            if key in file:
                del file[key]
        file[f"features.{expert}"] = np.ones((3, 8))
    track = open_tree(tmp_path / "MSRVTT").read(expert, "video0")
    assert track.times.mean(axis=1).tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("item", ["", "a", "../../../etc/x", "ab/../../c", "..x/../y"])
def test_ids_that_lead_out_of_the_tree_name_no_file(tmp_path, item):
    write_mmt(tmp_path / "MSRVTT")
    outside = tmp_path / "c.h5"
    with h5py.File(outside, "w") as file:
        file["features.s3d"] = np.ones((1, 2))
    assert isinstance(open_tree(tmp_path / "MSRVTT").read("s3d", item), Absent)


def test_one_damaged_file_leaves_the_others(tmp_path):
    write_mmt(tmp_path / "MSRVTT")
    path_of(tmp_path / "MSRVTT", "video3").write_bytes(b"no file of theirs")
    tree = open_tree(tmp_path / "MSRVTT")
    with pytest.raises(DatasetError, match=r"video3\.h5"):
        tree.read("s3d", "video3")
    assert tree.split("jsfusion-val").captions["video2"]
    assert len(tree.read("s3d", "video2")) == 3


def test_links_and_bytes_from_elsewhere_are_refused(tmp_path):
    write_mmt(tmp_path / "MSRVTT")
    with h5py.File(path_of(tmp_path / "MSRVTT", "video0"), "a") as file:
        del file["features.s3d"], file["features.rgb"], file["features.face"]
        file["features.s3d"] = h5py.ExternalLink(str(path_of(tmp_path / "MSRVTT", "video1")), "features.s3d")
        file.create_dataset("features.rgb", (4, 4), "u1", external=[("/etc/passwd", 0, 16)])
        file.create_dataset("features.face", (2**20, 2**20), "f8", chunks=(64, 64), compression="gzip")
    tree = open_tree(tmp_path / "MSRVTT")
    for expert in ("s3d", "rgb", "face"):
        with pytest.raises(DatasetError):
            tree.read(expert, "video0")


def test_without_h5py_the_error_names_the_command(tmp_path, monkeypatch):
    write_mmt(tmp_path / "MSRVTT")
    real = builtins.__import__

    def without(name, *rest):
        if name == "h5py":
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DatasetError, match=r"pip install 'wordreel\[datasets\]'"):
        open_tree(tmp_path / "MSRVTT").read("s3d", "video0")
