"""Each dataset's annotation files, written as they are published and read back."""

import json
import pickle

import pytest

from wordreel.errors import DatasetError, UnsafePickle
from wordreel.lab.datasets.registry import read_published
from wordreel.lab.datasets.types import Caption


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def ids(split):
    return [item.id for item in split.items]


def videodatainfo(tags, captions=2):
    return {
        "info": {"year": "2016"},
        "videos": [
            {"category": 9, "video_id": name, "start time": 0.0, "end time": 9.0, "split": tag, "id": n}
            for n, (name, tag) in enumerate(tags.items())
        ],
        "sentences": [
            {"caption": f"{name} said {n}", "video_id": name, "sen_id": n}
            for n in range(captions)
            for name in tags
        ],
    }


TRAIN_VAL = {"video0": "train", "video1": "train", "video2": "validate"}
TEST = {"video3": "test", "video4": "test"}


@pytest.mark.parametrize("together", [True, False])
def test_msrvtt_official(tmp_path, together):
    if together:
        put(tmp_path, "msrvtt_data/MSRVTT_data.json", videodatainfo(TRAIN_VAL | TEST))
    else:
        put(tmp_path, "train_val_videodatainfo.json", videodatainfo(TRAIN_VAL))
        put(tmp_path, "annotations/test_videodatainfo.json", videodatainfo(TEST))
    assert [ids(read_published("msrvtt", split, tmp_path)) for split in ("train", "val", "test")] == [
        ["video0", "video1"], ["video2"], ["video3", "video4"],
    ]  # fmt: skip
    assert read_published("msrvtt", "test", tmp_path).captions["video4"] == ["video4 said 0", "video4 said 1"]


def test_msrvtt_without_tags_needs_the_lists(tmp_path):
    content = videodatainfo(TRAIN_VAL | TEST)
    for video in content["videos"]:
        del video["split"]
    put(tmp_path, "MSRVTT_data.json", content)
    with pytest.raises(DatasetError, match=r"train_list_full.txt"):
        read_published("msrvtt", "train", tmp_path)
    put(tmp_path, "structured-symlinks/train_list_full.txt", "video1\nvideo0")
    assert ids(read_published("msrvtt", "train", tmp_path)) == ["video1", "video0"]


def test_msrvtt_1k_lists(tmp_path):
    put(tmp_path, "MSRVTT_data.json", videodatainfo(TRAIN_VAL | TEST))
    put(tmp_path, "MSRVTT_JSFUSION_test.csv", 'key,vid_key,video_id,sentence\nret0,msr4,video4,"one, two"\n')
    found = read_published("msrvtt", "1k-a", tmp_path)
    assert found.captions == {"video4": ["one, two"]}
    rest = read_published("msrvtt", "1k-a-train", tmp_path)
    assert ids(rest) == ["video0", "video1", "video2", "video3"]
    assert "MSRVTT_train.9k.csv" in rest.missing[0].what
    put(tmp_path, "MSRVTT_train.9k.csv", "video_id\nvideo2\nvideo0\n")
    assert ids(read_published("msrvtt", "1k-a-train", tmp_path)) == ["video2", "video0"]
    put(tmp_path, "test_list_miech.txt", "video1\nvideo3")
    assert ids(read_published("msrvtt", "1k-b", tmp_path)) == ["video1", "video3"]
    with pytest.raises(
        DatasetError, match=r"7,010 training videos .*MSRVTT_train.7k.csv.*Without it: use 1k-a-train"
    ):
        read_published("msrvtt", "1k-a-train-7k", tmp_path)


def test_msrvtt_faults(tmp_path):
    with pytest.raises(
        DatasetError, match=r"test captions \(test_videodatainfo.json\) not found in .*Without it: tr"
    ):
        read_published("msrvtt", "test", tmp_path)
    with pytest.raises(DatasetError, match="no split 'dev'; it has train, val"):
        read_published("msrvtt", "dev", tmp_path)
    with pytest.raises(DatasetError, match="is not a folder"):
        read_published("msrvtt", "test", tmp_path / "nowhere")
    put(tmp_path, "test_videodatainfo.json", {"videos": []})
    with pytest.raises(DatasetError, match="no field 'sentences'; there is 'videos'"):
        read_published("msrvtt", "test", tmp_path)
    content = videodatainfo(TEST)
    content["sentences"][0]["caption"] = None
    put(tmp_path, "test_videodatainfo.json", content)
    with pytest.raises(DatasetError, match="'video3' is NoneType, not text"):
        read_published("msrvtt", "test", tmp_path)
    put(tmp_path, "MSRVTT_JSFUSION_test.csv", "key,vid_key,video_id,sentence\nret0,msr4\n")
    with pytest.raises(DatasetError, match=r"JSFUSION_test.csv, line 2: 2 columns"):
        read_published("msrvtt", "1k-a", tmp_path)


def test_captionless_videos_stay_and_are_told(tmp_path):
    content = videodatainfo(TEST)
    content["sentences"] = [
        s | {"caption": s["caption"] * (s["video_id"] == "video3")} for s in content["sentences"]
    ]
    put(tmp_path, "test_videodatainfo.json", content)
    found = read_published("msrvtt", "test", tmp_path)
    assert found.captions == {"video3": ["video3 said 0", "video3 said 1"], "video4": []}
    assert "captions of 1 of 2 items (video4)" in found.missing[0].what


MSVD = {"abc_0_5": ["a cat eats", "the cat eats"], "x_y_3_9": ["a dog runs"], "z_1_2": ["a bird"]}


def msvd_lists(folder):
    put(folder, "train_list.txt", "abc_0_5\nz_1_2")
    put(folder, "test_list.txt", "x_y_3_9\r\n")


def msvd_as(form, folder):
    if form == "pickle":
        tokens = {name: [sentence.split() for sentence in sentences] for name, sentences in MSVD.items()}
        (folder / "raw-captions.pkl").write_bytes(pickle.dumps(tokens))
    elif form == "text":
        rows = [f"{name} {sentence}" for name, sentences in MSVD.items() for sentence in sentences]
        put(folder, "AllVideoDescriptions.txt", "# words\n\n" + "\n".join(rows) + "\n")
    else:
        sign = {"csv": ",", "tsv": "\t"}[form]
        head = "VideoID,Start,End,WorkerID,Source,AnnotationTime,Language,Description".replace(",", sign)
        rows = [
            sign.join([*name.rsplit("_", 2), "1", "clean", "9", "English", f'"{sentence}"'])
            for name, sentences in MSVD.items()
            for sentence in sentences
        ]
        rows.insert(1, sign.join(["abc", "0", "5", "1", "clean", "9", "German", "eine Katze"]))
        put(folder, f"video_corpus.{form}", head + "\n" + "\n".join(rows))


@pytest.mark.parametrize("form", ["pickle", "text", "csv", "tsv"])
def test_msvd_in_every_published_form(tmp_path, form):
    (tmp_path / "msvd_data").mkdir()
    msvd_as(form, tmp_path / "msvd_data")
    msvd_lists(tmp_path / "msvd_data")
    assert read_published("msvd", "train", tmp_path).captions == {
        name: MSVD[name] for name in ("abc_0_5", "z_1_2")
    }
    assert read_published("msvd", "test", tmp_path).captions == {"x_y_3_9": ["a dog runs"]}
    with pytest.raises(DatasetError, match=r"val_list.txt"):
        read_published("msvd", "val", tmp_path)


def test_msvd_faults(tmp_path):
    msvd_lists(tmp_path)
    with pytest.raises(DatasetError, match=r"raw-captions.pkl or AllVideoDescriptions.txt"):
        read_published("msvd", "test", tmp_path)
    put(tmp_path, "AllVideoDescriptions.txt", "x_y_3_9 a dog\nlonely\n")
    with pytest.raises(DatasetError, match="line 2: an id and a caption"):
        read_published("msvd", "test", tmp_path)
    put(tmp_path, "AllVideoDescriptions.txt", "other_1_2 a dog\n")
    with pytest.raises(DatasetError, match=r"none of the 1 items .*'x_y_3_9'.*not of one dataset"):
        read_published("msvd", "test", tmp_path)
    (tmp_path / "raw-captions.pkl").write_bytes(b"cposix\nsystem\n(S'true'\ntR.")
    with pytest.raises(UnsafePickle):
        read_published("msvd", "test", tmp_path)


def test_lsmdc(tmp_path):
    clip = "1004_Juno_00.00.32.801-00.00.36.890"
    times = "\t00:00:32.801\t00:00:36.890\t00:00:32.801\t00:00:36.890\t"
    put(
        tmp_path,
        "LSMDC16_challenge_1000_publictect.csv",
        f'{clip}{times}SOMEONE says "no", and goes.\r\nb_1{times}\r\n',
    )
    found = read_published("lsmdc", "test", tmp_path)
    assert found.captions == {clip: ['SOMEONE says "no", and goes.'], "b_1": []}
    assert found.items[0].path == f"1004_Juno/{clip}.avi"
    put(tmp_path, "LSMDC16_annos_val.csv", f"{clip}{times}fine\nb_1 no tabs\n")
    with pytest.raises(DatasetError, match=r"LSMDC16_annos_val.csv, line 2: 1 columns; LSMDC has 6"):
        read_published("lsmdc", "val", tmp_path)
    with pytest.raises(DatasetError, match=r"LSMDC16_annos_training.csv.*Without it: val and test"):
        read_published("lsmdc", "train", tmp_path)


def test_didemo(tmp_path):
    entries = [
        {"video": "1@N02_a.mov", "description": "a dog comes", "times": [[0, 0], [0, 1]], "num_segments": 6},
        {"video": "2@N02_b.3gp", "description": "two cats", "times": []},
        {"video": "1@N02_a.mov", "description": "it leaves", "times": [[5, 5]]},
    ]
    put(tmp_path, "test_data.json", entries)
    found = read_published("didemo", "test", tmp_path)
    assert found.items[0].captions == (Caption("a dog comes", 0.0, 7.5), Caption("it leaves", 25.0, 30.0))
    assert [item.path for item in found.items] == ["1@N02_a.mov", "2@N02_b.3gp"]
    assert "test_list.txt" in found.missing[0].what
    put(tmp_path, "test_list.txt", "2@N02_b.3gp\n")
    assert ids(read_published("didemo", "test", tmp_path)) == ["2@N02_b"]
    entries[2]["times"] = [[5]]
    put(tmp_path, "test_data.json", entries)
    with pytest.raises(DatasetError, match="entry 3: 'times' must be"):
        read_published("didemo", "test", tmp_path)


def test_activitynet(tmp_path):
    content = {
        "v_a": {
            "duration": 20,
            "timestamps": [[0, 9.5], [12, 9.5]],
            "sentences": [" A man sits.", "He goes."],
        },
        "v_b": {"duration": 5, "timestamps": [[0, 5]], "sentences": ["Rain."]},
    }
    put(tmp_path, "val_1.json", content)
    found = read_published("activitynet", "val1", tmp_path)
    assert found.items[0].captions == (Caption("A man sits.", 0.0, 9.5), Caption("He goes.", 9.5, 12.0))
    put(tmp_path, "val_ids.json", ["v_b"])
    assert ids(read_published("activitynet", "val1", tmp_path)) == ["v_b"]
    content["v_b"]["timestamps"] = []
    put(tmp_path, "val_2.json", content)
    with pytest.raises(DatasetError, match="'v_b': 0 times for 1 captions"):
        read_published("activitynet", "val2", tmp_path)
    content["v_b"]["timestamps"] = [[0, "5"]]
    put(tmp_path, "val_2.json", content)
    with pytest.raises(DatasetError, match="a time is str"):
        read_published("activitynet", "val2", tmp_path)
    put(tmp_path, "train.json", '{"v_a": {}, "v_a": {}}')
    with pytest.raises(DatasetError, match="'v_a' stands twice"):
        read_published("activitynet", "train", tmp_path)


def test_vatex_has_two_test_lists(tmp_path):
    entries = [
        {"videoID": f"id{n}_000001_000011", "enCap": [f"{n} one", f"{n} two"], "chCap": ["一"]}
        for n in range(4)
    ]
    put(tmp_path, "vatex_validation_v1.0.json", entries)
    put(tmp_path, "test_list.txt", "id0_000001_000011\nid1_000001_000011")
    put(tmp_path, "test1k5_sec_list.txt", "id1_000001_000011\nid3_000001_000011")
    assert read_published("vatex", "test-hgr", tmp_path).captions["id0_000001_000011"] == ["0 one", "0 two"]
    assert ids(read_published("vatex", "test-random", tmp_path)) == ["id1_000001_000011", "id3_000001_000011"]
    assert len(read_published("vatex", "official-val", tmp_path).items) == 4
    put(
        tmp_path,
        "vatex_data.json",
        {"id1_000001_000011": {"enCap": ["other"]}, "id3_000001_000011": {"enCap": ["x"]}},
    )
    assert read_published("vatex", "test-random", tmp_path).captions["id1_000001_000011"] == ["other"]
    put(tmp_path, "vatex_data.json", {"id1_000001_000011": ["other"]})
    with pytest.raises(DatasetError, match="an entry must be a JSON object"):
        read_published("vatex", "test-random", tmp_path)


def test_vatex_without_captions(tmp_path):
    put(tmp_path, "test_list.txt", "a\n")
    with pytest.raises(DatasetError, match=r"vatex_data.json"):
        read_published("vatex", "test-hgr", tmp_path)


def test_queryd(tmp_path):
    (tmp_path / "raw_captions_combined_filtered.pkl").write_bytes(
        pickle.dumps({"video-a": [["a", "man"], ["he", "sings"]], "video-b": [["rain"]]})
    )
    put(tmp_path, "structured-symlinks/test_list.txt", "video-a\nvideo-b\n")
    found = read_published("queryd", "test", tmp_path)
    assert found.captions == {"video-a": ["a man", "he sings"], "video-b": ["rain"]}
    assert "times_captions_combined_filtered.pkl" in found.missing[0].what
    times = tmp_path / "times_captions_combined_filtered.pkl"
    times.write_bytes(pickle.dumps({"video-a": [[0.5, 2], (3, 4.5)], "video-b": [[1, 2]]}))
    assert read_published("queryd", "test", tmp_path).items[0].captions[1] == Caption("he sings", 3.0, 4.5)
    times.write_bytes(pickle.dumps({"video-a": [[0.5, 2]]}))
    with pytest.raises(DatasetError, match="'video-a': 1 times for 2 captions"):
        read_published("queryd", "test", tmp_path)


def test_queryd_captions_lie_one_folder_deeper(tmp_path):
    inner = tmp_path / "structured-symlinks" / "structured-symlinks"
    inner.mkdir(parents=True)
    (inner / "raw_captions_combined_filtered.pkl").write_bytes(pickle.dumps({"video-a": [["a", "man"]]}))
    put(tmp_path, "structured-symlinks/test_list.txt", "video-a\n")
    assert read_published("queryd", "test", tmp_path).captions == {"video-a": ["a man"]}


def test_audiocaps(tmp_path):
    head = "audiocap_id,youtube_id,start_time,caption\n"
    put(
        tmp_path,
        "test.csv",
        head + '1,abcdefghijk,30,"Rain, then wind"\n2,abcdefghijk,30,Rain\n3,-_345678901,0,A dog\n',
    )
    found = read_published("audiocaps", "test", tmp_path)
    assert found.captions == {"abcdefghijk": ["Rain, then wind", "Rain"], "-_345678901": ["A dog"]}
    assert "not comparable" in found.missing[0].without
    put(tmp_path, "final_filtered_test_list.txt", "-_345678901_0\n")
    assert ids(read_published("audiocaps", "test", tmp_path)) == ["-_345678901"]
    put(tmp_path, "val.csv", "1,abcdefghijk,30,Rain\n")
    with pytest.raises(DatasetError, match=r"val.csv, line 1: no column 'youtube_id'"):
        read_published("audiocaps", "val", tmp_path)
