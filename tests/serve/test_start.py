"""What `wordreel serve` decides before it starts."""

import pytest
from tests.serve.test_access import HASH
from typer.testing import CliRunner

from wordreel.catalogue.store import LibraryStore
from wordreel.cli.app import app
from wordreel.cli.setup import serve as command
from wordreel.serve import tokens


@pytest.fixture
def start(library, monkeypatch):
    """Run `wordreel serve` with arguments: the options it would serve with, or the error."""

    def run(*arguments):
        started = []
        monkeypatch.setattr(command, "_stay", lambda opened, options, *more: started.append(options))
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


def test_one_process_serves_unless_more_are_asked_for(start):
    assert start().workers == 1
    assert start("--workers", 3).workers == 3
    for wrong in ("0", "65", "many"):
        assert isinstance(start("--workers", wrong), str)


def test_a_name_that_others_can_reach_needs_a_token(start):
    """Behind a proxy, everybody comes from loopback."""
    error = start("--name", "films.example")
    assert isinstance(error, str), "everybody behind the proxy may write"
    assert "films.example" in error
    assert "serve --new-token" in error
    for name in ("localhost", "127.0.0.1", "LOCALHOST"):
        assert start("--name", name).token is None


def test_a_token_that_exists_is_asked_for(start, library):
    with LibraryStore.open(library) as store:
        tokens.save_token_hash(store, None, HASH)
    for arguments in ((), ("--name", "films.example"), ("--host", "0.0.0.0")):  # noqa: S104
        assert start(*arguments).token == HASH


def test_a_token_can_be_removed(start, library, tmp_path):
    file = tmp_path / "token"
    for named in ((), ("--token-file", file)):
        words = ["serve", "-L", str(library), "--remove-token", *map(str, named)]
        with LibraryStore.open(library) as store:
            tokens.save_token_hash(store, named[1] if named else None, HASH)
        assert start(*named).token == HASH
        assert "Removed" in CliRunner().invoke(app, words).output
        assert "There is no token" in CliRunner().invoke(app, words).output
        assert CliRunner().invoke(app, [*words, "--new-token"]).exit_code == 2
    assert start().token is None
    assert not file.exists()
    assert isinstance(start("--host", "0.0.0.0"), str)  # noqa: S104
