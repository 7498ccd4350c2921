"""`wordreel cut` and `wordreel search --format`."""

import json

from wordreel.errors import MediaError


def test_a_moment_becomes_a_file(media, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    monkeypatch.chdir(tmp_path)
    station = str(media / "station.mp4")
    result = CliRunner().invoke(app, ["cut", station, "0:01", "2"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "station 0.00.01-0.00.02.mp4").is_file()
    out = str(tmp_path / "part.mkv")
    result = CliRunner().invoke(app, ["cut", station, "1", "2", out, "--tolerance", "100", "--json"])
    report = json.loads(result.stdout)
    assert (report["path"], report["picture"]) == (out, "copied")
    result = CliRunner().invoke(app, ["cut", station, "1", "2", out])
    assert isinstance(result.exception, MediaError)
    assert "exists already" in str(result.exception)


def test_hits_are_printed_for_other_programs(shell):
    for form, begins in (("csv", "rank,name,"), ("edl", "TITLE:"), ("otio", "{"), ("m3u", "#EXTM3U")):
        assert shell("search", "grand opening", "--format", form).startswith(begins)
