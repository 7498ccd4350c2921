"""What `wordreel serve` decides before it starts."""

import pytest
from typer.testing import CliRunner

from wordreel.cli import serve as command
from wordreel.cli.app import app


@pytest.fixture
def start(library, monkeypatch):
    """Run `wordreel serve` with arguments: the options it would serve with, or the error."""

    def run(*arguments):
        started = []
        monkeypatch.setattr(command, "_stay", lambda opened, options, open_page: started.append(options))
        result = CliRunner().invoke(app, ["serve", "-L", str(library), "--port", "0", *map(str, arguments)])
        assert bool(started) == (result.exit_code == 0)
        return started[0] if started else f"{result.exception} {result.output}"

    return run


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
def test_a_token_file_without_a_token_stops_the_server(start, tmp_path, content):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    error = start("--token-file", file)
    assert isinstance(error, str), "it starts with login off"
    assert f"serve --new-token --token-file {file}" in error
