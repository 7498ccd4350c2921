"""What the server advises can be done by those whom it advises."""

import ast
import re
from pathlib import Path

import pytest

import wordreel
from wordreel.catalogue.banks import BUILD_A_BANK
from wordreel.errors import BankError, LibraryError, NextStep, QueryError
from wordreel.serve.problems import problem_of

SOURCE = Path(wordreel.__file__).parent
COMMANDS = re.compile(r"wordreel [a-z]|--[a-z]|command line|(GET|POST|PUT|DELETE) /|/api/")
OWNER = "the owner of the library can"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (BankError("the normalisation 'is' needs a query bank", BUILD_A_BANK), "Settings → Ranking"),
        (QueryError("a minimum confidence needs a query bank", BUILD_A_BANK), "Settings → Ranking"),
        (BankError("'csls' has no beta", NextStep("leave beta out")), "leave beta out"),
        (LibraryError("the embeddings are damaged", NextStep("rebuild them", command="reindex")), OWNER),
        (LibraryError("the track file is missing", NextStep("repair it", command="verify --repair")), OWNER),
        (QueryError("there is nothing to say"), "nothing to say"),
    ],
)
def test_errors_name_a_step_for_their_reader(error, advice):
    message = problem_of(error).message
    assert message.startswith(error.message)
    assert advice in message
    assert not COMMANDS.search(message)


def test_the_page_sends_nobody_to_a_command_line():
    for path in (SOURCE / "serve" / "page" / "js").glob("*.js"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"[`:] ?wordreel [a-z]|command line", line), line


def test_no_message_of_the_server_holds_a_route_or_an_option():
    """What the page shows is for people: no addresses of the API, options, patterns or JSON."""
    strings = 0
    for path in (SOURCE / "serve").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem"
            for part in ast.walk(node) if named else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    strings += 1
                    assert not re.search(r"--[a-z]|/api/|[{}^$]", part.value), f"{path}:{part.lineno}"
    assert strings > 100


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/search?text=red&limit=9999", "“limit” must be at most 200"),
        ("/api/search?text=red&limit=many", "“limit” is not written as it should be"),
        ("/api/search?text=red&colour=blue", "“colour” is not known here"),
        ("/api/search?text=red&folder=Videos", "“folder” is not written as it should be"),
        ("/api/search?text=%20", "“text”: say what to look for; the text is empty"),
        ("/api/folders?path=Videos", "“path”: write the whole path, such as ~/Videos"),
        ("/api/videos/%20", "“content” is not written as it should be"),
        ("/nowhere", "there is nothing at this address"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_in_words(site, path, words):
    assert site.get(path).json["error"]["message"] == words


def test_over_http(site):
    error = site.get("/api/search?text=red&norm=is").json["error"]
    assert "Settings → Ranking" in error["message"]
    assert error["next_step"] == {
        "text": "build a query bank",
        "command": "bank build",
        "page": "Settings → Ranking",
    }
    message = site.get("/api/search?text=red&min_confidence=0.5").json["error"]["message"]
    assert "wordreel" not in message
    error = site.get("/api/search?text=red&norm=csls&beta=3").json["error"]
    assert "--" not in error["message"]
    assert site.get("/nowhere").json["error"]["next_step"] is None


def test_no_message_of_the_library_holds_a_command():
    """A command belongs into the next step of an error, which each front end words for its own users."""
    strings = 0
    for package in ("banks", "search", "library", "models", "weights", "experts"):
        for path in (SOURCE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise):
                    for part in ast.walk(node):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            strings += 1
                            assert "`wordreel " not in part.value, f"{path}:{part.lineno}"
    assert strings > 100
