"""Files made to do harm, in the place of every pickle of every layout. None is carried out."""

import os
import pickle
import struct
import subprocess

import numpy as np
import pytest
from tests.lab.datasets.trees.published import (
    dump,
    write_ce,
    write_clip4clip,
    write_mmt,
    write_moee_lsmdc,
    write_moee_msrvtt,
    write_teachtext,
)

from wordreel.errors import DatasetError, UnsafePickle
from wordreel.lab.datasets.trees import open_tree
from wordreel.lab.evaluate.matrices import read_mask, read_matrix

CANARY = "canary"


class Calls:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def _array(rows, columns):
    """A pickle of an array that claims this many rows and columns and has four bytes."""
    long = b"".join(b"\x8a\x06" + size.to_bytes(6, "little") for size in (rows, columns))
    good = pickle.dumps({"video0": np.zeros(1, "f4")}, 2)
    assert good.count(b"K\x01K\x01\x85") == 1  # version 1, shape (1,)
    return good.replace(b"K\x01K\x01\x85", b"K\x01" + long + b"\x86")


HOSTILE = {
    "runs a program": pickle.dumps({"video0": Calls(os.system, f"touch {CANARY}")}),
    "runs another": pickle.dumps(Calls(subprocess.check_output, ["touch", CANARY])),
    "evaluates": pickle.dumps(Calls(eval, f"open('{CANARY}', 'w')")),
    "builds by hand": b"cposix\nsystem\n(S'touch canary'\ntR.",
    "claims a huge array": _array(2**38, 2**20),
    "claims huge bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    "claims a huge memo": b"\x80\x04K\x05r" + struct.pack("<I", 2**32 - 1) + b".",
    "is cut off": pickle.dumps({"video0": np.zeros(1000)})[:-100],
    "is empty": b"",
    "is something else": b"PK\x03\x04 not a pickle",
    "is an object": pickle.dumps(pytest.MonkeyPatch),
}
WRONG = {"a list": [1, 2], "a number": 3, "text": "abc", "an array": np.zeros(3), "nothing": None}


def ask(read, path):
    """Refused: an error of ours, whatever the file holds, and no canary."""
    with pytest.raises((UnsafePickle, DatasetError)) as raised:
        read()
    assert path.name in str(raised.value)
    assert "weights" not in str(raised.value)
    assert not (path.parent / CANARY).exists()
    assert not os.path.exists(CANARY)  # noqa: PTH110


def places(tmp_path):
    """Every kind of pickle in every layout, and what reads it."""
    write_ce(tmp_path / "MSRVTT")
    root = tmp_path / "MSRVTT" / "structured-symlinks"
    yield (
        root / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle",
        lambda: open_tree(tmp_path / "MSRVTT").read("audio", "video0"),
    )
    yield root / "raw-captions.pkl", lambda: open_tree(tmp_path / "MSRVTT").split("full-test")
    yield (
        root / "jsfusion_val_caption_idx.pkl",
        lambda: open_tree(tmp_path / "MSRVTT").split("jsfusion-val"),
    )
    yield (
        root / "aggregated_text_feats" / "w2v_MSRVTT_openAIGPT.pickle",
        lambda: open_tree(tmp_path / "MSRVTT").word_features("openai", "video0"),
    )
    said = write_teachtext(tmp_path / "MSVD")
    root = tmp_path / "MSVD" / "high-quality" / "structured-symlinks"
    yield (
        root / "teachers" / "train-full-ce-refined-text-w2v.pkl",
        lambda: open_tree(tmp_path / "MSVD").teacher_embeddings(
            "train-full-ce-refined-text-w2v", said["ids"][0]
        ),
    )
    yield (
        root / "denoise-less100.pkl",
        lambda: open_tree(tmp_path / "MSVD").caption_mask("denoise-less100", said["ids"][0]),
    )
    yield (
        root / "dict_youtube_mapping.pkl",
        lambda: open_tree(tmp_path / "MSVD").read("imagenet.resnext101_32x48d.0", said["ids"][0]),
    )
    write_clip4clip(tmp_path / "clip", "MSVD")
    yield tmp_path / "clip" / "raw-captions.pkl", lambda: open_tree(tmp_path / "clip").split("test")
    write_moee_msrvtt(tmp_path / "moee")
    yield (
        tmp_path / "moee" / "resnet_features.pickle",
        lambda: open_tree(tmp_path / "moee").read("visual", "video0"),
    )
    pytest.importorskip("h5py")
    write_mmt(tmp_path / "mmt")
    yield (
        tmp_path / "mmt" / "symlinked-feats" / "jsfusion_val_caption_idx.pkl",
        lambda: open_tree(tmp_path / "mmt").split("jsfusion-val"),
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_no_layout_carries_out_a_hostile_pickle(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for path, read in places(tmp_path):
        good = path.read_bytes()
        path.write_bytes(HOSTILE[name])
        ask(read, path)
        path.write_bytes(good)
        read()


@pytest.mark.parametrize("name", WRONG)
def test_pickles_of_other_things_are_refused(tmp_path, name):
    for path, read in places(tmp_path):
        dump(path, WRONG[name])
        ask(read, path)


def test_an_array_file_that_is_a_pickle_inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_moee_lsmdc(tmp_path / "moee")
    objects = np.empty(2, object)
    objects[0] = Calls(os.system, f"touch {CANARY}")
    path = tmp_path / "moee" / "X_audio_train.npy"
    np.save(path, objects, allow_pickle=True)
    ask(lambda: open_tree(tmp_path / "moee").read("audio", "train-0"), path)
    path.write_bytes(path.read_bytes()[:60])
    ask(lambda: open_tree(tmp_path / "moee").read("audio", "train-0"), path)


def test_captions_that_are_no_captions(tmp_path):
    write_clip4clip(tmp_path / "clip", "MSVD")
    loop: list = []
    loop.append(loop)
    wide: list = [["a"] * 50_000] * 50_000
    for captions in (3, [3], [[3]], loop, [[["deep"]]], {"a": 1}, wide):
        dump(tmp_path / "clip" / "raw-captions.pkl", {"video2": captions, "video3": captions})
        with pytest.raises(DatasetError):
            open_tree(tmp_path / "clip").split("test")


def test_similarities_of_qb_norm_read_back_and_hostile_ones_do_not(tmp_path, monkeypatch):
    """The pickles that the querybank code ships: two matrices and a mask of queries."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "msrvtt"
    bank, test = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("f4")
    mask = np.array([[1, 1], [1, 0], [1, 1]])
    files = {
        "tt-ce-train-captions-test-videos-seed0.pkl": bank,
        "tt-ce-test-captions-test-videos-seed0.pkl": test,
    }
    for name, matrix in files.items():
        path = dump(folder / name, matrix)
        assert np.array_equal(read_matrix(path), matrix)
    path = dump(folder / "tt-ce-test-query_masks.pkl", mask)
    assert np.array_equal(read_mask(path), mask)
    for data in HOSTILE.values():
        path.write_bytes(data)
        for read in (read_matrix, read_mask):
            with pytest.raises(Exception, match=path.name) as raised:
                read(path)
            assert type(raised.value).__module__ == "wordreel.errors"
    assert not (tmp_path / CANARY).exists()
