import pytest

from wordreel.banks.sources import BankQueries, builtin, everyday_queries, from_log, subsample
from wordreel.errors import BankError


def test_the_list_that_ships_is_varied_and_clean():
    found = builtin().texts
    assert len(found) > 900
    assert len(set(found)) == len(found)
    assert all(text == " ".join(text.split()) and text.isprintable() for text in found)
    assert min(len(text.split()) for text in found) == 1
    assert max(len(text.split()) for text in found) > 7
    assert everyday_queries() == list(found)


def test_a_log_is_lines_or_json(tmp_path):
    path = tmp_path / "queries.log"
    path.write_bytes('\ufeffa dog\n\n{"query": "a cat", "at": 3}\r\n{"text": "ein Hündchen"}\n'.encode())
    assert from_log(str(path)) == BankQueries(("a dog", "a cat", "ein Hündchen"), "the log queries.log")


@pytest.mark.parametrize("line", ['{"when": 3}', "{not json", '{"query": 3}', "x" * 3000, "a\0b"])
def test_what_is_no_query_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "queries.log"
    path.write_text(f"a dog\n{line}\n")
    with pytest.raises(BankError, match="line 2"):
        from_log(str(path))


def test_a_log_that_is_not_there(tmp_path):
    with pytest.raises(BankError, match="cannot be read"):
        from_log(str(tmp_path / "nothing"))


def test_a_subsample_takes_evenly():
    found = BankQueries(tuple("abcdefghi"), "x")
    assert subsample(found, 3).texts == ("a", "e", "i")
    assert subsample(found, 1).texts == ("a",)
    assert subsample(found, 100) is found
    assert subsample(found, None) is found
