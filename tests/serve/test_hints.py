"""What the server advises can be done by those whom it advises."""

import re
from pathlib import Path

import pytest

import wordreel
from wordreel.errors import BankError, LibraryError, QueryError
from wordreel.serve.hints import OWNER, for_page
from wordreel.serve.problems import of

SOURCE = Path(wordreel.__file__).parent
COMMANDS = re.compile(r"`wordreel [a-z]|--(norm|bank|beta|min-confidence)")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BankError("--norm is needs a query bank; `wordreel bank build` makes one"), "POST /api/banks"),
        (QueryError("a least confidence needs a query bank; `wordreel bank build` makes one"), "Hubness"),
        (BankError("'csls' has no beta; leave --beta out"), "leave beta out"),
        (LibraryError("the embeddings are damaged; run `wordreel reindex` to make them anew"), OWNER),
        (LibraryError("the track file is missing; run `wordreel verify --repair`"), OWNER),
        (QueryError("there is nothing to say"), "nothing to say"),
    ],
)
def test_errors_name_a_step_for_their_reader(error, said):
    message = of(error).message
    assert said in message
    assert not COMMANDS.search(message) or message.endswith(OWNER)
    assert for_page(message) == message, "saying it twice changes nothing"


def test_every_advice_of_the_library_is_covered():
    """Whatever the messages of the parts below say, nobody is sent to a command line unwarned."""
    found = 0
    for part in ("banks", "search", "library", "models", "weights", "experts"):
        for path in (SOURCE / part).rglob("*.py"):
            for message in re.findall(r'"([^"\n]*`wordreel [^"\n]*)"', path.read_text(encoding="utf-8")):
                found += 1
                told = for_page(message)
                assert not COMMANDS.search(told) or told.endswith(OWNER), message
    assert found > 10


def test_the_page_sends_nobody_to_a_command_line_unwarned():
    for path in (SOURCE / "serve" / "page" / "js").glob("*.js"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"[`:] ?wordreel [a-z]", line):
                assert re.search(r"owner|[Ww]hoever runs", line), line


def test_over_http(site):
    assert "POST /api/banks" in site.get("/api/search?text=red&norm=is").json["error"]["message"]
    message = site.get("/api/search?text=red&min_confidence=0.5").json["error"]["message"]
    assert "wordreel" not in message
    assert "--" not in site.get("/api/search?text=red&norm=csls&beta=3").json["error"]["message"]
