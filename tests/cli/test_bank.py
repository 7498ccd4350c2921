"""`wordreel bank …` and `search --norm` on a small real library."""

import json

import pytest

from wordreel.errors import BankError


def test_a_new_library_has_the_everyday_bank_and_confidences(shell):
    rows = shell.json("bank", "list")
    assert [(row["name"], row["check"]) for row in rows] == [("everyday", "unchecked")]
    hits = shell.json("search", "grand opening of a bakery")
    assert all(0 <= hit["confidence"] <= 1 for hit in hits)
    assert hits[0]["confidence"] > hits[1]["confidence"]
    assert {hit["norm"] for hit in hits} == {"none"}
    assert "% sure" in shell("search", "bakery")


def test_build_add_show_drop(shell, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("a bakery\na train\na platform\n")
    assert shell.json("bank", "build", "mine", "--log", str(log))["queries"] == 3
    shell("bank", "add", "mine", "a bread roll", "a train")
    shown = shell.json("bank", "show", "mine")
    assert shown["texts"] == ["a bakery", "a train", "a platform", "a bread roll"]
    assert "1 queries" in shell("bank", "remove", "mine", "a train")
    assert "a bread roll" in shell("bank", "show", "mine")
    with pytest.raises(BankError, match="already"):
        shell("bank", "build", "mine", "--builtin")
    shell("bank", "remove", "mine", "--all")
    with pytest.raises(BankError, match="everyday"):
        shell("bank", "show", "mine")
    shell("bank", "remove", "mine", code=2)
    shell("bank", "build", "other", code=2)


@pytest.mark.parametrize("norm", ["dis", "is", "csls", "nnn", "cent", "gc", "sinkhorn"])
def test_search_with_a_norm_says_what_made_the_score(shell, norm):
    hits = shell.json("search", "grand opening of a bakery", "--norm", norm)
    assert hits[0]["path"].endswith("bakery.mp4")
    labels = {hit["norm"] for hit in hits}
    assert len(labels) == 1
    label = labels.pop()
    assert label.startswith(f"querybank(everyday, 987 queries, method={norm}") or (
        norm == "dis" and label == "none"
    )


def test_a_least_confidence_can_leave_nothing(shell):
    assert shell.json("search", "grand opening of a bakery", "--min-confidence", "1") == []
    assert "lower --min-confidence" in shell("search", "bakery", "--min-confidence", "1")
    shell("bank", "remove", "everyday", "--all")
    with pytest.raises(Exception, match="bank build"):
        shell("search", "bakery", "--min-confidence", "0.5")
    with pytest.raises(BankError, match="bank build"):
        shell("search", "bakery", "--norm", "dis")


def test_check_needs_enough_captions(shell, tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["a bakery opens"], "station": ["to Vienna"]}))
    with pytest.raises(BankError, match="too few"):
        shell("bank", "check", "everyday", "--captions", str(captions))


def test_a_check_with_the_captions_of_the_bank_says_so(shell, tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["a bakery opens"], "station": ["to Vienna"]}))
    shell("bank", "build", "mine", "--captions", str(captions))
    with pytest.raises(BankError, match="all 2 captions are queries of the bank 'mine'"):
        shell("bank", "check", "mine", "--captions", str(captions))


def test_adding_and_removing_videos_keeps_the_bank_current(shell, media):
    before = shell.json("search", "a train station", "--norm", "is", "--beta", "20")
    shell("remove", str(media / "station.mp4"))
    after = shell.json("search", "a train station", "--norm", "is", "--beta", "20")
    assert len(after) == len(before) - 1
    shell("add", str(media / "station.mp4"), "--experts", "clip,ocr,shots")
    again = shell.json("search", "a train station", "--norm", "is", "--beta", "20")
    assert [hit["path"] for hit in again] == [hit["path"] for hit in before]
    for old, new in zip(before, again, strict=True):
        assert new["score"] == pytest.approx(old["score"], abs=1e-4)
