"""`wordreel import` on small trees of every layout, and what the other verbs make of the result."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.digest import digest_of
from tests.lab.datasets.trees.published import (
    IDS,
    TEST,
    TEXTS,
    TRAIN,
    dump,
    write_ce,
    write_clip4clip,
    write_list,
    write_miech,
    write_mmt,
    write_moee_msrvtt,
    write_teachtext,
)

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import DatasetError, QueryError, UnsafePickle, WordreelError
from wordreel.maintain.verify import verify
from wordreel.types import Absent, Track


@pytest.fixture
def opened(tmp_path):
    def open_():
        return LibraryStore.open(tmp_path / "library")

    return open_


def test_features_and_captions_come_in_and_stay_as_they_are(wordreel, opened, tmp_path):
    said = write_ce(tmp_path / "MSRVTT")
    said.pop("words")
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert (report["added"], report["failed"], report["missing"]) == (4, [], [])
    assert report["captions"] == {
        "full-train": 4, "full-test": 4, "jsfusion-train": 6, "jsfusion-val": 1
    }  # fmt: skip
    assert report["experts"]["ce/face"] == [2, 2]
    with opened() as store:
        assert [file.path for file in store.files()] == [f"dataset:MSRVTT/{item}" for item in IDS]
        for item in IDS:
            content = store.file(f"dataset:MSRVTT/{item}").content
            for expert, values in said.items():
                found = store.track(content, f"ce/{expert}")
                value = values.get(item)
                if isinstance(found, Track):
                    assert np.array_equal(found.values, np.atleast_2d(value).astype("f4"))
                else:
                    assert isinstance(found, Absent)
                    assert value is None or np.size(value) == 0 or np.isnan(value).all()
        by_path = {file.content: file.path for file in store.files()}
        told = [(by_path[c.content], c.text) for c in store.captions("full-test", "MSRVTT")]
        assert told == [(f"dataset:MSRVTT/{item}", text) for item in TEST for text in TEXTS[item]]
        assert len(store.captions("jsfusion-val", "MSRVTT")) == 1
        assert verify(store) == []
        assert len(store.clip_ids()) == 4


def test_a_second_import_finds_everything_there(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    with opened() as store:
        before, clips = digest_of(store), store.clip_ids()
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert (report["added"], report["updated"], report["skipped"]) == (0, 0, 4)
    with opened() as store:
        assert (digest_of(store), store.clip_ids()) == (before, clips)


def test_experts_and_splits_can_come_one_after_the_other(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT", "--experts", "audio", "--split", "full-test")
    with opened() as store:
        content = store.file("dataset:MSRVTT/video2").content
        assert [row.expert for row in store.tracks(content)] == ["ce/audio"]
        clips = store.clip_ids()
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--experts", "audio,face", "--json"))
    assert (report["added"], report["updated"]) == (2, 2)
    with opened() as store:
        assert store.file("dataset:MSRVTT/video2").content == content
        assert [row.expert for row in store.tracks(content)] == ["ce/audio", "ce/face"]
        assert not set(clips) & set(store.clip_ids())  # embeddings of the old ones are of other features
        assert verify(store) == []


def test_a_file_of_features_that_changed_is_read_again(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    audio = tmp_path / "MSRVTT" / "structured-symlinks" / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle"
    dump(audio, {item: np.full((9, 3), n + 1.0) * np.arange(3) for n, item in enumerate(IDS)})
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert report["updated"] == 4
    assert list(report["experts"]) == ["ce/audio"]
    with opened() as store:
        found = store.track(store.file("dataset:MSRVTT/video0").content, "ce/audio")
        assert found.values.shape == (9, 3)
        assert verify(store) == []


def test_verbs_know_imported_items(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    assert "No problems." in wordreel("verify")
    listed = wordreel("list")
    assert "features  dataset:MSRVTT/video0" in listed
    shown = wordreel("show", "dataset:MSRVTT/video2")
    assert "ce/audio" in shown
    assert TEXTS["video2"][0] in shown
    assert "0 files removed" in wordreel("remove", "--missing")
    assert "removed dataset:MSRVTT/video0" in wordreel("remove", "dataset:MSRVTT/video0")
    assert "3 files removed" in wordreel("remove", "dataset:MSRVTT")
    with opened() as store:
        assert store.captions() == []
        assert store.videos() == []
        assert list(store.track_files.all()) == []
        assert verify(store) == []


def test_search_without_a_model_for_these_features_says_what_to_do(wordreel, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    with pytest.raises(QueryError, match=r"trained on those features.*wordreel add"):
        wordreel("search", "a man sings")


def test_search_shows_the_id_where_a_model_fits(wordreel, opened, tmp_path):
    from wordreel.embed.embed_library import check_model_fits, embed_library
    from wordreel.models.base import Model
    from wordreel.search.query import Query
    from wordreel.search.searcher import Searcher
    from wordreel.types import QueryEmbedding

    class Direction(Model):
        """Finds the item whose first number of one foreign expert is largest."""

        name, dim, fingerprint = "direction", 7, "d" * 16
        experts = track_experts = ("ce/scene.densenet161.0",)

        def embed(self, tracks, clips):
            vectors = np.zeros((len(clips), 1, 7), np.float32)
            for expert in tracks:
                vectors[:, 0] = tracks[expert].values.mean(axis=0)
            return vectors, np.full((len(clips), 1), bool(tracks))

        def encode(self, texts):
            return [QueryEmbedding(np.eye(1, 7, dtype=np.float32), np.ones(1, np.float32), t) for t in texts]

    said = write_ce(tmp_path / "MSRVTT")
    wordreel("import", tmp_path / "MSRVTT")
    best = max(IDS, key=lambda item: said["scene.densenet161.0"][item][0])
    with opened() as store:
        check_model_fits(store, Direction())
        assert embed_library(store, Direction()) == 4
        hits = Searcher.open(store, Direction()).search(Query("anything"))
        assert str(hits[0].path) == f"dataset:MSRVTT/{best}"
        from wordreel.cli.find.search import player

        with pytest.raises(WordreelError, match="no file to play"):
            player(hits[0])


def test_one_bad_item_does_not_stop_the_rest(wordreel, opened, tmp_path):
    root = tmp_path / "Odd" / "structured-symlinks"
    ids = ["good", "bad", "../up", "half\ud800", "a/b"]
    values = {item: np.ones(3) + n * np.arange(3) for n, item in enumerate(ids)}
    dump(root / "aggregated_audio" / "vggish-raw.pickle", {**values, "bad": "words"})
    report = json.loads(wordreel("import", tmp_path / "Odd", "--json"))
    assert report["added"] == 3
    assert {path for path, _ in report["failed"]} == {"dataset:Odd/bad", "'half\\ud800'"}
    assert "dataset:Odd/bad" in wordreel("list", "--failures")
    with opened() as store:
        assert {file.path for file in store.files()} == {
            "dataset:Odd/good", "dataset:Odd/%2E%2E%2Fup", "dataset:Odd/a/b"
        }  # fmt: skip
    dump(root / "aggregated_audio" / "vggish-raw.pickle", {**values, "bad": np.arange(3.0)})
    wordreel("import", tmp_path / "Odd")
    assert "0 files could not be added" in wordreel("list", "--failures")


def test_one_bad_expert_leaves_the_others_of_an_item(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    audio = tmp_path / "MSRVTT" / "structured-symlinks" / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle"
    dump(audio, {"video0": np.array([1.0, np.inf]), **{item: np.ones((1, 2)) for item in IDS[1:]}})
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert report["added"] == 4
    [[path, reason]] = report["failed"]
    assert path == "dataset:MSRVTT/video0"
    assert "finite" in reason
    with opened() as store:
        content = store.file(path).content
        assert store.track(content, "ce/audio") is None
        assert isinstance(store.track(content, "ce/scene.densenet161.0"), Track)


def test_a_hostile_pickle_stops_the_import_before_anything_is_written(
    wordreel, opened, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_ce(tmp_path / "MSRVTT")
    audio = tmp_path / "MSRVTT" / "structured-symlinks" / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle"
    audio.write_bytes(b"cposix\nsystem\n(S'touch canary'\ntR.")
    with pytest.raises(UnsafePickle, match=r"Audio_MSRVTT_new\.pickle"):
        wordreel("import", tmp_path / "MSRVTT")
    assert not (tmp_path / "canary").exists()
    with opened() as store:
        assert store.files() == []
    wordreel("import", tmp_path / "MSRVTT", "--experts", "face")  # the rest can be had without it


def test_1k_b_is_imported_by_itself(wordreel, opened, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    write_miech(tmp_path / "MSRVTT" / "structured-symlinks")
    with pytest.raises(DatasetError, match=r"other feature files.*--split miech-test"):
        wordreel("import", tmp_path / "MSRVTT", "--split", "full-test,miech-test")
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert set(report["captions"]) == {"full-train", "full-test", "jsfusion-train", "jsfusion-val"}
    [note] = report["missing"]
    assert "miech-test, miech-train" in note["what"]
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--split", "miech-test", "--json"))
    assert (report["dataset"], report["added"], report["captions"]) == ("MSRVTT-1k-B", 1, {"miech-test": 2})
    with opened() as store:
        face = store.track(store.file("dataset:MSRVTT-1k-B/video3").content, "ce/face")
        assert face.values.shape == (1, 128)
        face = store.track(store.file("dataset:MSRVTT/video2").content, "ce/face")
        assert face.values.shape == (1, 5)


def test_lists_of_another_dataset(wordreel, tmp_path):
    write_ce(tmp_path / "MSRVTT")
    write_list(tmp_path / "MSRVTT" / "structured-symlinks" / "test_list_full.txt", ["other1", "other2"])
    with pytest.raises(DatasetError, match="different datasets"):
        wordreel("import", tmp_path / "MSRVTT", "--split", "full-test")


def test_the_other_layouts(wordreel, opened, tmp_path):
    pytest.importorskip("h5py")
    write_teachtext(tmp_path / "MSVD")
    write_mmt(tmp_path / "MSRVTT")
    write_moee_msrvtt(tmp_path / "moee")
    assert "3 added" in wordreel("import", tmp_path / "MSVD")
    assert "4 added" in wordreel("import", tmp_path / "MSRVTT", "--kind", "mmt")
    said = wordreel("import", tmp_path / "moee", "--kind", "moee")
    assert "4 updated" in said  # the same videos of the same dataset, by other experts
    assert "Missing: raw captions" in said
    with opened() as store:
        content = store.file("dataset:MSRVTT/video2").content
        names = [row.expert for row in store.tracks(content)]
        assert names == [
            "mmt/face", "mmt/rgb", "mmt/s3d", "mmt/speech",
            "moee/audio", "moee/face", "moee/motion", "moee/visual",
        ]  # fmt: skip
        assert store.info(content).duration == 3.0
        assert verify(store) == []
        assert store.captions("jsfusion-val")[0].text == TEXTS["video2"][1]


def test_a_damaged_file_of_one_video_leaves_the_others(wordreel, opened, tmp_path):
    pytest.importorskip("h5py")
    write_mmt(tmp_path / "MSRVTT")
    path = tmp_path / "MSRVTT" / "vid_feat_files" / "mult_h5" / "v" / "i" / "d" / "video3.h5"
    path.write_bytes(path.read_bytes()[:300])
    report = json.loads(wordreel("import", tmp_path / "MSRVTT", "--json"))
    assert report["added"] == 3
    assert [path for path, _ in report["failed"]] == ["dataset:MSRVTT/video3"]


def test_captions_for_videos_that_are_in_the_library(wordreel, opened, tmp_path):
    from wordreel.demo.film import title_card, write_film

    write_clip4clip(tmp_path / "data", "MSVD")
    films = tmp_path / "data" / "videos" / "all"
    for path in films.iterdir():
        path.unlink()
    for number, item in enumerate(TRAIN):
        write_film(films / f"{item}.mp4", title_card([f"number {number}"], 1, (10, 20, 30 * number)))
    wordreel("add", films, "--experts", "shots")
    out = json.loads(wordreel("import", tmp_path / "data", "--json"))
    assert (out["updated"], len(out["failed"])) == (2, 2)
    assert "wordreel add" in out["failed"][0][1]
    with opened() as store:
        paths = {file.content: os.path.basename(file.path) for file in store.files()}  # noqa: PTH119
        told = [(paths[c.content], c.text) for c in store.captions("train")]
        assert told == [(f"{item}.mp4", text) for item in TRAIN for text in TEXTS[item]]
        assert [problem for problem in verify(store) if not problem.note] == []


def test_killed_in_the_middle_it_goes_on(wordreel, opened, tmp_path):
    root = tmp_path / "Big" / "structured-symlinks"
    rng = np.random.default_rng(0)
    values = {f"v{n}": rng.normal(size=(2, 4)).astype("f4") for n in range(1200)}
    dump(root / "aggregated_audio" / "vggish-raw.pickle", values)
    command = [
        sys.executable, "-c", "from wordreel.cli import main; main()",
        "import", str(tmp_path / "Big"), "--library", str(tmp_path / "library"),
    ]  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tracks = tmp_path / "library" / "tracks"
    until = time.monotonic() + 60
    while sum(1 for _ in tracks.glob("??/*")) < 150 and time.monotonic() < until:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    with opened() as store:
        there = len(store.files())
    assert 0 < there < 1200
    report = json.loads(wordreel("import", tmp_path / "Big", "--json"))
    assert (report["added"], report["skipped"]) == (1200 - there, there)
    with opened() as store:
        assert verify(store) == []
        for name in ("v0", "v600", "v1199"):
            found = store.track(store.file(f"dataset:Big/{name}").content, "ce/audio")
            assert np.array_equal(found.values, values[name])


def test_what_is_no_tree(wordreel, tmp_path):
    with pytest.raises(DatasetError, match="no folder"):
        wordreel("import", tmp_path / "nothing")
    with pytest.raises(DatasetError, match="--kind"):
        wordreel("import", tmp_path)
    for kind in ("ce", "teachtext", "mmt", "clip4clip", "moee"):
        with pytest.raises(DatasetError, match=str(tmp_path)):
            wordreel("import", tmp_path, "--kind", kind)
    with pytest.raises(DatasetError, match="clip4clip"):
        wordreel("import", tmp_path, "--kind", "nonsense")
    write_ce(tmp_path / "MSRVTT")
    with pytest.raises(DatasetError, match="imagenet"):
        wordreel("import", tmp_path / "MSRVTT", "--experts", "nobody")
