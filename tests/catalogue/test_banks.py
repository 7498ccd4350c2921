import pytest

from wordreel.catalogue.banks import (
    add_queries,
    create_bank,
    delete_bank,
    list_banks,
    read_bank,
    read_check,
    remove_queries,
    save_check,
)
from wordreel.errors import BankError


def test_a_bank_keeps_its_sentences_tidy_and_in_order(store):
    bank = create_bank(store, "mine", ["a  dog", "", "  ", "a cat", "a dog"], "my list")
    assert bank.texts == ("a dog", "a cat")
    assert [(row.name, row.size, row.source) for row in list_banks(store)] == [("mine", 2, "my list")]
    assert add_queries(store, "mine", ["a cat", "a cow"], "later") == 1
    assert read_bank(store, "mine").texts == ("a dog", "a cat", "a cow")
    assert read_bank(store, "mine").sources == ("my list", "my list", "later")
    assert remove_queries(store, "mine", ["a cat", "a horse"]) == 1
    assert read_bank(store, "mine").texts == ("a dog", "a cow")


def test_ids_are_never_used_twice(store):
    create_bank(store, "mine", ["one", "two"], "x")
    before = set(read_bank(store, "mine").ids)
    remove_queries(store, "mine", ["two"])
    add_queries(store, "mine", ["two"], "x")
    assert len(set(read_bank(store, "mine").ids) - before) == 1


def test_the_revision_names_the_sentences_not_their_order(store):
    a = create_bank(store, "a", ["one", "two"], "x")
    b = create_bank(store, "b", ["two", "one"], "y")
    c = create_bank(store, "c", ["one"], "y")
    assert a.revision == b.revision != c.revision


def test_faults_are_told_and_lose_nothing(store):
    with pytest.raises(BankError, match="bank build"):
        read_bank(store, "mine")
    with pytest.raises(BankError, match="at least one"):
        create_bank(store, "mine", ["", " "], "an empty file")
    create_bank(store, "mine", ["one"], "x")
    with pytest.raises(BankError, match="already"):
        create_bank(store, "mine", ["two"], "x")
    with pytest.raises(BankError, match="mine"):
        read_bank(store, "yours")
    with pytest.raises(BankError, match="--all"):
        remove_queries(store, "mine", ["one"])
    for name in ("", "a/b", "a\nb", "x" * 101):
        with pytest.raises(BankError, match="cannot name"):
            create_bank(store, name, ["one"], "x")
    assert read_bank(store, "mine").texts == ("one",)


def test_a_forgotten_bank_takes_its_queries_and_checks_along(store):
    bank = create_bank(store, "mine", ["one"], "x")
    save_check(store, bank, "f", True, {"method": "dis"})
    found = read_check(store, "mine", "f")
    assert found is not None
    assert found.passed
    assert found.report == {"method": "dis"}
    assert read_check(store, "mine", "g") is None
    delete_bank(store, "mine")
    assert list_banks(store) == []
    assert read_check(store, "mine", "f") is None
    assert store.catalogue.rows("SELECT count(*) FROM bank_queries") == [(0,)]
