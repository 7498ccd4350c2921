"""What each verb does, on a small library made of real files with real experts."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wordreel.errors import LibraryError, QueryError, WordreelError


def test_add_reports_every_file(report, media):
    assert sorted(report["added"]) == [str(media / "signs" / "bakery.mp4"), str(media / "station.mp4")]
    assert [path for path, _ in report["failed"]] == [str(media / "broken.mp4")]
    assert report["ignored"] == 1


def test_add_again_does_nothing(shell, media):
    again = shell.json("add", str(media), "--experts", "clip,ocr,shots")
    assert (again["added"], again["skipped"], again["failed"]) == ([], 2, [])
    assert len(again["still_failed"]) == 1


def test_search_finds_what_is_written(shell, media):
    hits = shell.json("search", "grand opening of a bakery")
    assert hits[0]["path"] == str(media / "signs" / "bakery.mp4")
    assert hits[0]["why"][0]["expert"] == "ocr words"
    assert hits[0]["score"] > hits[1]["score"]


def test_search_as_a_person_sees_it(shell):
    lines = shell("search", "train to Vienna", "--limit", "1").splitlines()
    assert re.match(r"  1\.  0\.\d{3}  .*station\.mp4  \[0:00\.0 – 0:03\.\d\]", lines[0])
    assert "Vienna" in lines[1]
    assert len(lines) == 2


def test_search_filters(shell, media):
    inside = shell.json("search", "opening", "--folder", str(media / "signs"))
    assert [hit["path"] for hit in inside] == [str(media / "signs" / "bakery.mp4")]
    assert shell.json("search", "opening", "--after", "2999-01-01") == []
    assert "no file" in shell("search", "opening", "--after", "2999-01-01")


def test_sorting_by_date(shell, media):
    bakery, station = str(media / "signs" / "bakery.mp4"), str(media / "station.mp4")
    dates = {video["paths"][0]: video["captured"] for video in shell.json("list")}
    newest = sorted(dates, key=dates.__getitem__, reverse=True)
    assert [video["paths"][0] for video in shell.json("list", "--sort", "date")] == newest
    assert shell("list", "--sort", "date").startswith(dates[newest[0]][:10])
    hits = shell.json("search", "opening", "--sort", "date")
    assert [(hit["path"], hit["captured"]) for hit in hits] == [(path, dates[path]) for path in newest]
    assert {hit["path"] for hit in hits if hit["rank"] == 1} == {bakery}
    shown = shell.json("show", station)
    assert (shown["captured"], shown["captured_from"]) == (dates[station], "file time")


def test_search_filters_by_what_a_file_is(shell, media):
    bakery, station = str(media / "signs" / "bakery.mp4"), str(media / "station.mp4")

    def found(*options):
        return sorted(hit["path"] for hit in shell.json("search", "opening", *options))

    assert found() == found("--kind", "video") == sorted([bakery, station])
    assert found("--kind", "image") == []
    assert bakery in found("--has-text")
    assert bakery not in found("--no-text")
    assert found("--has-speech") == []  # nobody listened
    assert found("--min-duration", "1000") == []
    assert found("--max-duration", "1000") == found()
    shell("search", "opening", "--kind", "smell", code=2)


def test_an_empty_query_is_refused(shell):
    with pytest.raises(QueryError, match="empty"):
        shell("search", "   ")


def test_searching_where_no_library_is(shell, tmp_path):
    shell.library = tmp_path / "nowhere"
    with pytest.raises(LibraryError, match="wordreel add"):
        shell("search", "x")


def test_searching_an_empty_library(shell, tmp_path):
    shell.library = tmp_path / "new"
    empty = tmp_path / "empty"
    empty.mkdir()
    shell.json("add", str(empty), "--experts", "shots")
    assert "wordreel add FOLDER" in shell("search", "x")
    assert shell.json("search", "x") == []


def test_list_show_and_failures(shell, media):
    assert "2 files" in shell("list")
    assert {row["paths"][0] for row in shell.json("list")} == {
        str(media / "signs" / "bakery.mp4"),
        str(media / "station.mp4"),
    }
    assert "broken.mp4" in shell("list", "--failures")
    shown = shell.json("show", str(media / "station.mp4"))
    assert "Platform 9" in {words["text"] for words in shown["words"]}
    assert {expert["name"] for expert in shown["experts"]} == {"clip", "ocr", "shots"}
    assert "Platform 9" in shell("show", str(media / "station.mp4"))


def test_showing_what_is_not_there(shell, media):
    with pytest.raises(LibraryError, match="not in the library"):
        shell("show", str(media / "notes.txt"))
    with pytest.raises(LibraryError, match="could not be added"):
        shell("show", str(media / "broken.mp4"))


def test_remove_forgets_and_leaves_the_media(shell, media):
    assert "1 file removed" in shell("remove", str(media / "station.mp4"))
    assert (media / "station.mp4").exists()
    assert len(shell.json("search", "Vienna")) == 1
    shell("remove", code=2)


def test_verify_and_repair(shell):
    assert shell.json("verify") == []
    track = next((shell.library / "tracks").rglob("*.safetensors"))
    track.write_bytes(b"damaged")
    problems = shell.json("verify", code=1)
    assert [problem["kind"] for problem in problems] == ["track"]
    assert problems[0]["next_step"] == "repair the library: `wordreel verify --repair`"
    listed = shell("verify", code=1).splitlines()
    assert listed[0].startswith("problem: track: ")
    assert listed[1:] == ["→ repair the library: `wordreel verify --repair`", "1 problem."]
    assert shell("verify", "--repair").splitlines() == [
        "1 problem repaired.",
        "→ extract the dropped tracks again: `wordreel add FOLDER`",
        "No problems.",
    ]


def test_reindex_embeds_everything(shell):
    assert shell("reindex").startswith("2 clips")


def test_doctor_is_content(shell):
    findings = shell.json("doctor")
    assert {finding["what"] for finding in findings} >= {"python", "text tower", "library"}
    assert not [finding for finding in findings if finding["state"] == "error"]


def test_evaluate_writes_a_table_and_its_facts(shell, tmp_path):
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["a bakery opens"], "station": ["to Vienna"], "gone": ["x"]}))
    out = tmp_path / "results" / "mine"
    table = shell("evaluate", "captions", str(captions), "--out", str(out))
    facts = json.loads(out.with_suffix(".json").read_text())
    measured, run = facts["measured"], facts["runs"][0]
    assert (measured["videos"], measured["missing"], run["queries"]) == (2, 1, 2)
    assert (run["direction"], run["postprocessing"], run["figures"]["R1"]) == ("t2v", "none", 100)
    assert "| direction | post-processing" in out.with_suffix(".md").read_text()
    assert table.startswith("direction")
    page = out.with_suffix(".html").read_text()
    assert "Recall at K" in page
    assert "By the length of the query" in page
    from wordreel.lab.reports.report_files import read

    assert read(out).queries.videos == ("bakery", "station")


def test_experts_lists_what_is_missing_and_how_to_get_it():
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    rows = {row["name"]: row for row in json.loads(CliRunner().invoke(app, ["experts", "--json"]).stdout)}
    assert rows["speech"]["modality"]
    assert rows["clip"]["dimension"] == 512
    assert "wordreel weights add senet154" in rows["senet154"]["how"]


def test_an_unknown_expert_is_named(shell, media):
    with pytest.raises(WordreelError, match="no expert named 'nose'"):
        shell("add", str(media), "--experts", "nose")


def run(*words):
    return subprocess.run(
        [sys.executable, "-c", "from wordreel.cli import main; main()", *words],
        capture_output=True,
        text=True,
    )


def test_errors_are_one_line_without_a_traceback(tmp_path):
    ran = run("search", "x", "--library", str(tmp_path / "nowhere"))
    assert ran.returncode == 1
    assert ran.stderr.startswith("wordreel: there is no library at")
    assert ran.stderr.count("\n") == 1


def test_help_and_import_load_nothing_heavy():
    program = (
        "import sys, wordreel\n"
        "from typer.testing import CliRunner\n"
        "from wordreel.cli.app import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "heavy = {'torch', 'numpy', 'av', 'onnxruntime', 'onnx', 'cv2', 'faster_whisper', 'rapidocr'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_search_loads_only_what_it_needs(built):
    """A cold start is mostly imports: what a search by words does not need is not imported."""
    library = built[0] / "library"
    program = (
        "import sys\n"
        "from wordreel.cli import main\n"
        "sys.argv = ['wordreel', 'search', 'grand opening', '--library', sys.argv[1]]\n"
        "try:\n    main()\nexcept SystemExit as stopped:\n    assert not stopped.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, str(library)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "bakery.mp4" in ran.stdout
    loaded = set(ran.stderr.split())
    heavy = {"onnx", "torch", "av", "cv2", "rich.console", "fastapi"}
    unused = {"media.fence", "library.ingest", "hubness.torch_fit", "search.like", "search.video_query"}
    unused |= {"index.cuda", "index.server", "backbones.backbone", "models.clip.zero_shot", "cli.train"}
    assert sorted(loaded & (heavy | {f"wordreel.{name}" for name in unused})) == []
    assert len([name for name in loaded if name.startswith("wordreel")]) <= 160


def test_opening_starts_a_player_at_the_moment(shell, tmp_path, monkeypatch):
    said = tmp_path / "said"
    player = tmp_path / "bin" / "mpv"
    player.parent.mkdir()
    player.write_text(f'#!/bin/sh\necho "$@" > {said}\n')
    player.chmod(0o755)
    monkeypatch.setenv("PATH", str(player.parent))
    shell("search", "train to Vienna", "--open")
    for _ in range(1200):
        if said.exists() and said.read_text():
            break
        time.sleep(0.05)
    assert re.match(r"--start=0\.00 -- .*station\.mp4", said.read_text())


def test_opening_without_a_player_says_so(shell, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(WordreelError, match="install mpv"):
        shell("search", "train to Vienna", "--open")


def test_only_reasons_that_carried_the_hit_are_printed():
    from wordreel.cli.find.hit_lines import reasons
    from wordreel.search.hits import Hit, Reason

    why = tuple(
        Reason(name, share, name) for name, share in zip("abcde", (0.3, 0.1, 0.06, 0.05, 0.001), strict=True)
    )
    shown = reasons(Hit(1, 0.51, Path("x.mp4"), 0.0, 1.0, "video", 1.0, "0", why))
    assert shown == "a +0.30: a  ·  b +0.10: b  ·  c +0.06: c"
    weak = reasons(Hit(1, -0.2, Path("x.mp4"), 0.0, 1.0, "video", 1.0, "0", (Reason("a", -0.2, "b"),)))
    assert weak == "a -0.20: b"
