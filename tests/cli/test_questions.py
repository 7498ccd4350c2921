"""`use`, `like` and `caption` on a small library made of real files with real experts."""

import json
import re
import shutil
from itertools import chain

import cv2
import pytest

from wordreel.demo.film import title_card, write_film
from wordreel.errors import DatasetError, LibraryError, MediaError, QueryError


@pytest.fixture
def checkpoint(tmp_path):
    pytest.importorskip("torch")
    from tests.lab.models import twins
    from tests.lab.models.small import model

    from wordreel.lab.models import checkpoint
    from wordreel.lab.models.config import CEConfig, ExpertConfig, TextConfig

    def make(*experts):
        known = {"clip": 512, "ocr": 512, "motion": 1024, "sound": 1024}
        text = TextConfig("vectors", 3, "vlad", 2, source="word2vec:words.txt")
        config = CEConfig(tuple(ExpertConfig(name, known[name]) for name in experts), text, 8)
        folder = tmp_path / "runs" / "-".join(experts)
        checkpoint.save(folder, twins.stir(model(config)), "signs")
        (folder / "words.txt").write_text("train 1 0 0\nbakery 0 1 0\nto 0 0 1\n")
        return folder

    return make


def test_use_says_which_model_answers(shell):
    assert re.match(r"joint +[0-9a-f]{16}  2/2 clips embedded  in use\n", shell("use"))
    rows = [(row["name"], row["in_use"]) for row in shell.json("use", "--list")]
    assert rows == [("joint", True)]


def test_use_a_checkpoint_and_go_back(shell, checkpoint):
    folder = checkpoint("clip", "ocr")
    before = shell.json("search", "train to Vienna")
    assert re.match(
        r"signs \([0-9a-f]{16}\) is in use; 2 clips were embedded\.\n$", shell("use", str(folder))
    )
    shutil.rmtree(folder)
    checkpoint = shell.json("search", "train to Vienna")
    assert {hit["path"] for hit in checkpoint} == {hit["path"] for hit in before}
    assert [hit["score"] for hit in checkpoint] != [hit["score"] for hit in before]
    assert len(shell("use").splitlines()) >= 2
    rows = {row["name"]: row for row in shell.json("use", "--list")}
    assert (rows["signs"]["in_use"], rows["joint"]["in_use"], rows["joint"]["embedded"]) == (True, False, 2)
    assert "2 files" in shell("list")
    assert shell("verify").endswith("\n")
    assert shell.json("use", "joint")["embedded"] == 0
    assert shell.json("search", "train to Vienna") == before
    assert shell.json("use", "signs")["embedded"] == 0


def test_use_warns_or_refuses(shell, checkpoint):
    some = shell.json("use", str(checkpoint("ocr", "motion")))
    assert "--experts motion" in some["notes"][0]
    shell("use", "joint")
    with pytest.raises(LibraryError, match="--experts motion"):
        shell("use", str(checkpoint("motion")))
    with pytest.raises(LibraryError, match="no model 'nothing'"):
        shell("use", "nothing")
    assert shell.json("use")[0]["in_use"]
    shell("use", "joint", "--list", code=2)


def test_like_finds_the_other_video(shell, media):
    found = shell.json("search", "--like", str(media / "station.mp4"))
    assert [hit["path"] for hit in found] == [str(media / "signs" / "bakery.mp4")]
    assert {reason["expert"] for reason in found[0]["why"]} == {"seen", "ocr"}
    lines = shell("search", "--like", str(media / "station.mp4"), "--second", "1").splitlines()
    assert re.match(r"  1\.  -?0\.\d{3}  .*bakery\.mp4  \[0:00\.0 – 0:03\.\d\]", lines[0])
    assert lines[1].startswith("      like 0:00.0 – 0:03.")
    assert shell.json("search", "--like", str(media / "station.mp4"), "--folder", "/nowhere") == []
    assert "Nothing to show" in shell("search", "--like", str(media / "station.mp4"), "--after", "2999-01-01")
    with pytest.raises(QueryError, match="no second"):
        shell("search", "--like", str(media / "station.mp4"), "--second", "99")


@pytest.mark.parametrize("verb", ["words", "like"])
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("--kind", "video"), True),
        (("--kind", "image"), False),
        (("--min-duration", "2"), True),
        (("--min-duration", "60"), False),
        (("--max-duration", "60"), True),
        (("--max-duration", "2"), False),
        (("--has-text",), True),
        (("--no-text",), False),
        (("--no-speech",), True),
        (("--has-speech",), False),
    ],
)
def test_search_and_like_have_the_same_filters(shell, media, verb, words, found):
    question = ["bakery"] if verb == "words" else ["--like", str(media / "station.mp4")]
    paths = [hit["path"] for hit in shell.json("search", *question, *words)]
    assert (str(media / "signs" / "bakery.mp4") in paths) is found
    assert found or not paths


def test_files_outside_are_looked_at_and_not_added(shell, tmp_path, media):
    film = tmp_path / "outside.mp4"
    write_film(film, title_card(["Platform 9", "to Vienna"], 2, (22, 60, 50)))
    found = shell.json("search", "--like", str(film))
    assert [hit["path"] for hit in found] == [str(media / "station.mp4"), str(media / "signs" / "bakery.mp4")]
    assert {reason["expert"] for reason in found[0]["why"]} == {"seen", "ocr"}
    texts = tmp_path / "captions.txt"
    texts.write_text("a bowl of soup\nPlatform 9 for the train to Vienna\na dog runs in the snow\n")
    best = shell.json("caption", str(film), "--from", str(texts))
    rank = {found["text"]: found["rank"] for found in best}
    assert len(rank) == 3
    assert sorted(rank.values()) == [1, 2, 3]
    why = next(found["why"] for found in best if found["text"].startswith("Platform"))
    read = {reason["what"] for reason in why if reason["expert"] == "ocr"}
    assert read in ({"“Platform 9”"}, {"“to Vienna”"})  # both lines are in this caption
    assert len(shell.json("list")) == 2


def test_caption_as_a_person_sees_it(shell, tmp_path, media):
    texts = tmp_path / "captions.json"
    texts.write_text(json.dumps({"a": ["the grand opening of a bakery"], "b": ["a train to Vienna"]}))
    video = str(media / "signs" / "bakery.mp4")
    lines = shell("caption", video, "--from", str(texts), "--limit", "1").splitlines()
    assert re.match(r"  1\.  0\.\d{3}  “the grand opening of a bakery”  \[0:00\.0 – 0:03\.\d\]", lines[0])
    assert "Miller's Bakery" in lines[1]
    normed = shell.json("caption", video, "--from", str(texts), "--norm", "dis", "--beta", "10")
    assert normed[0]["norm"] == "videobank(1 videos, method=dis, beta=10)"
    with pytest.raises(QueryError, match="not known"):
        shell("caption", video, "--from", str(texts), "--norm", "auto")
    with pytest.raises(DatasetError, match="cannot be read"):
        shell("caption", video, "--from", str(tmp_path / "none.txt"))


def test_what_is_no_video(shell, media, tmp_path):
    with pytest.raises(MediaError, match=r"broken\.mp4"):
        shell("search", "--like", str(media / "broken.mp4"))
    with pytest.raises(QueryError, match="neither in the library"):
        shell("search", "--like", str(tmp_path / "gone.mp4"))


@pytest.fixture
def two_scenes(shell, tmp_path):
    """A film of two scenes, added to the library."""
    film = tmp_path / "scenes.mp4"
    cards = (["Platform 9"], 4, (10, 90, 40)), (["Grand opening"], 4, (150, 20, 90))
    write_film(film, chain.from_iterable(title_card(*card) for card in cards))
    shell("add", str(film), "--experts", "clip,ocr,shots")
    return film


def test_first_this_then_that(shell, two_scenes):
    (hit,) = shell.json("search", "platform 9", "--then", "the grand opening")
    assert hit["path"] == str(two_scenes)
    assert hit["end"] <= hit["then"][0]
    lines = shell("search", "platform 9", "--then", "the grand opening").splitlines()
    assert re.match(r"      then 0:0[34]\.\d – 0:0[78]\.\d  \(-?\d\.\d{3}\)$", lines[1])
    assert shell.json("search", "the grand opening", "--then", "platform 9")[0]["score"] < hit["score"]
    with pytest.raises(QueryError, match="leave out `moments`"):
        shell("search", "a", "--then", "b", "--moments")


def test_where_in_a_video(shell, two_scenes):
    found = shell.json("where", str(two_scenes), "the grand opening")
    assert found["moments"][0][0] >= 3
    assert found["scores"][0] < found["scores"][-1]
    lines = shell("where", str(two_scenes), "the grand opening").splitlines()
    assert re.match(r"0:00\.0 │[ ▁▂▃▄▅▆▇█]+│ 0:0[78]\.\d$", lines[0])
    assert re.match(r"  [ \d]{3}%  0:0[34]\.\d – 0:0[78]\.\d$", lines[1])
    with pytest.raises(LibraryError, match="not in the library"):
        shell("where", "elsewhere.mp4", "a dog")


def test_plain_against_normalised(shell, media):
    found = shell.json("search", "the grand opening of a bakery", "--compare", "--norm", "is")
    assert found["norm"].startswith("querybank(everyday, ")
    plain = shell.json("search", "the grand opening of a bakery", "--norm", "none")
    normalised = shell.json("search", "the grand opening of a bakery", "--norm", "is")
    assert (found["plain"], found["normalised"]) == (plain, normalised)
    lines = shell("search", "the grand opening of a bakery", "--compare", "--norm", "is").splitlines()
    assert lines[0].startswith("none → querybank(everyday, ")
    assert re.match(r"  [12] →  1\.  -?\d\.\d{3}  .*\.mp4  \[.*\].*  (=|↑1|↓1|new)$", lines[1])


def test_a_picture_asks(shell, media, tmp_path):
    frame = next(iter(title_card(["Platform 9", "to Vienna"], 1, (20, 60, 50))))
    cv2.imwrite(str(tmp_path / "frame.png"), frame[..., ::-1])
    found = shell.json("search", "--image", str(tmp_path / "frame.png"), "--limit", "1")
    assert [hit["path"] for hit in found] == [str(media / "station.mp4")]
    with pytest.raises(QueryError, match="exactly one"):
        shell("search", "a dog", "--image", str(tmp_path / "frame.png"))


def test_the_expert_filter(shell):
    assert shell.json("search", "bakery", "--expert", "ocr")
    assert shell.json("search", "bakery", "--expert", "faces") == []
