"""Order and sureness agree on every surface; `python -m tests.order LIBRARY` asks a real library."""

import pytest
from tests.order import Checks, check_http, check_python
from tests.serve.conftest import opened, running

QUERIES = ["red", "blue dogs", "green and red", "a grey wall", "zzz"]


@pytest.fixture
def with_bank(library):
    """A library whose hits have confidences."""
    colours = ("red", "green", "blue", "grey", "yellow", "black", "white", "brown")
    opened(library).banks.build(
        "colours", [f"{one} thing {n}" for one in colours for n in range(15)], "a test"
    )
    return library


def test_no_list_contradicts_itself(with_bank, ready):
    checks = Checks()
    library = opened(with_bank)
    assert library.search(QUERIES[0], limit=1)[0].confidence is not None
    check_python(checks, library, QUERIES, confident=True)
    with running(with_bank, roots=(ready[1],)) as site:
        check_http(checks, site.port, QUERIES, confident=True)
    assert checks.contradictions == []
    assert set(checks.lists.values()) == {len(QUERIES)}
    assert len(checks.lists) == 24


def test_what_contradicts_is_found():
    checks = Checks()
    good = [{"rank": 1, "score": 0.5, "confidence": 0.2}, {"rank": 2, "score": 0.5, "confidence": 0.2}]
    checks.hits("list", "query", good)
    assert not checks.contradictions
    for change in ({"score": 0.6}, {"confidence": 0.21}, {"rank": 3}):
        checks = Checks()
        checks.hits("list", "query", [good[0], {**good[1], **change}])
        assert len(checks.contradictions) == 1
    line = "{:>3}.  {:.3f}  /films/9% sure 1.  0.5.mp4  [0:00.0 – 0:02.0]  {:>4} sure"
    checks.lines("lines", "query", "\n".join([line.format(1, 0.5, "7%"), line.format(2, 0.4, "8%")]))
    assert len(checks.contradictions) == 2
    assert "percent 7.0 above 8.0" in checks.contradictions[1]
