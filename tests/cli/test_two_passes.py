"""`add --quick`, then the thorough pass: hits, lists and reports say which pass a file has had."""

import pytest
from tests.cli.conftest import Shell
from tests.digest import digest_of
from typer.testing import CliRunner

from wordreel import Library
from wordreel.cli.app import app
from wordreel.errors import WordreelError

EXPERTS = "clip,ocr,shots"


def test_quick_then_thorough(tmp_path, media):
    shell = Shell(tmp_path / "two")
    report = shell.json("add", str(media), "--quick", "--experts", EXPERTS)
    assert (len(report["added"]), report["quick"]["files"], report["waiting"]) == (2, 2, 2)
    assert {row["analysis"] for row in shell.json("list")} == {"quick"}
    assert shell("list").count("(quick look)") == 2
    hits = shell.json("search", "grand opening of a bakery")
    assert hits[0]["path"].endswith("bakery.mp4")
    assert hits[0]["analysis"] == "quick"
    assert "(quick look)" in shell("search", "platform")
    assert "quick look only" in shell("show", str(media / "station.mp4"))
    kept = (hits[0]["content"], hits[0]["start"])
    again = shell.json("add", "--thorough", "--experts", EXPERTS)
    assert (len(again["updated"]), again["waiting"]) == (2, 0)
    assert {row["analysis"] for row in shell.json("list")} == {"thorough"}
    hit = shell.json("search", "grand opening of a bakery")[0]
    assert hit["analysis"] == "thorough"
    assert (hit["content"], hit["start"]) == kept  # links to a second of a file stay good
    assert "quick" not in shell("list")
    assert shell("add", "--thorough", "--experts", EXPERTS).startswith("nothing to add")
    assert shell.json("verify") == []
    alone = Shell(tmp_path / "alone")
    alone.json("add", str(media), "--thorough", "--experts", EXPERTS)
    with Library(tmp_path / "two") as two, Library(tmp_path / "alone") as one:
        assert digest_of(two.store) == digest_of(one.store)
        query = "a train to Vienna"
        assert [hit.score for hit in two.search(query)] == pytest.approx([h.score for h in one.search(query)])


def test_both_in_one_command_if_there_is_enough_to_look_at(tmp_path, media, monkeypatch):
    seen = []
    monkeypatch.setattr("wordreel.ingest.add.QUICK_FROM", 0)
    with Library(tmp_path / "library") as library:
        names = EXPERTS.split(",")
        report = library.add(
            media, experts=names, on_progress=lambda now: seen.append(getattr(now, "analysis", ""))
        )
        assert (len(report.added), report.quick.files, report.waiting, report.updated) == (2, 2, 0, [])
    assert [one for one in dict.fromkeys(seen) if one] == ["quick", "thorough"]


def test_what_does_not_go_together(tmp_path):
    with Library(tmp_path / "library") as library:
        with pytest.raises(WordreelError, match="nothing to add"):
            library.add()
        with pytest.raises(WordreelError, match="sees single frames"):
            library.add(tmp_path, passes=["quick"], experts=["shots"])
        with pytest.raises(WordreelError, match="not on workers"):
            library.add(tmp_path, passes=["quick"], on="local")
        with pytest.raises(ValueError, match="there is no pass 'third'"):
            library.add(tmp_path, passes=["third"])
    refused = CliRunner().invoke(app, ["add", "--quick", "--library", str(tmp_path / "library")])
    assert refused.exit_code == 2
    assert "name files or folders" in refused.output
