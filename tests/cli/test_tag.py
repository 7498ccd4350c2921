"""`wordreel tag` and `wordreel saved`."""

import json

import pytest

from wordreel.errors import WordreelError


def test_tags_are_added_found_listed_and_removed(shell, media):
    station = str(media / "station.mp4")
    shell("tag", "add", station, "trains", "two words", "--from", "0:01", "--to", "2.5")
    shell("tag", "note", station, "the zeppelin leaves")
    (note, *tags) = shell.json("tag", "list", station)
    assert [tag["text"] for tag in tags] == ["trains", "two words"]
    assert (tags[0]["start"], tags[0]["end"], note["kind"]) == (1.0, 2.5, "note")
    assert "trains  1 moment in 1 video" in shell("tag", "list")
    assert "2 tags, 1 note" in shell("tag", "list")
    assert "station.mp4" in shell("tag", "list", "--tag", "TRAINS")
    (hit,) = shell.json("search", "grand opening tag:trains")
    assert hit["path"] == station
    assert hit["why"][0]["expert"] == "tag"
    assert "tag: trains" in shell("search", "grand opening", "--tag", "trains")
    shell("tag", "remove", *(str(tag["id"]) for tag in tags))
    assert "0 tags, 1 note" in shell("tag", "list")


def test_tags_travel_as_json(shell, media, tmp_path):
    shell("tag", "add", str(media / "station.mp4"), "trains")
    (tmp_path / "tags.json").write_text(shell("tag", "export"), "utf-8")
    assert "0 new, 1 known, 0 of videos" in shell("tag", "import", str(tmp_path / "tags.json"))
    for text, words in (("[{", "not JSON"), ("{}", "list of entries"), ('["x"]', "list of entries")):
        (tmp_path / "bad.json").write_text(text, "utf-8")
        with pytest.raises(WordreelError, match=words):
            shell("tag", "import", str(tmp_path / "bad.json"))
    with pytest.raises(WordreelError, match="cannot be read"):
        shell("tag", "import", str(tmp_path / "none.json"))


def test_a_moment_is_a_time(shell, media):
    for time in ("soon", "-3", "1:2:3:4", ""):
        shell("tag", "add", str(media / "station.mp4"), "x", "--from", time, code=2)


def test_saved_searches(shell, tmp_path):
    line = shell("saved", "add", "long ones", "grand opening", "--min-duration", "1", "--tag", "x")
    assert line == "long ones:  “grand opening”  min_duration 1.0, tags ['x']\n"
    assert json.loads(shell("saved", "export")) == [
        {"name": "long ones", "query": {"text": "grand opening", "min_duration": 1.0, "tags": ["x"]}}
    ]
    assert "Nothing to show" in shell("saved", "run", "long ones")
    shell("saved", "add", "all", "grand opening")
    assert shell.json("saved", "run", "all", "--limit", "1")[0]["path"].endswith("bakery.mp4")
    assert "2 saved searches" in shell("saved", "list")
    (tmp_path / "saved.json").write_text(shell("saved", "export"), "utf-8")
    shell("saved", "remove", "all")
    with pytest.raises(WordreelError, match="already"):
        shell("saved", "import", str(tmp_path / "saved.json"))
    assert shell("saved", "import", str(tmp_path / "saved.json"), "--overwrite") == "2 saved\n"
