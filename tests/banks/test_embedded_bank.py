import numpy as np
import pytest

from wordreel.banks.choose_scoring import choose_scoring
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.query_embeddings import bank_cache_dir, embed_queries
from wordreel.catalogue.banks import add_queries, create_bank, read_bank, remove_queries, save_check
from wordreel.embed.embed_library import embed_library
from wordreel.errors import BankError
from wordreel.hubness import make_method
from wordreel.search.searcher import Searcher

BANK = ["red", "red and green", "blue", "green things", "a red dog", "blue blue", "nothing at all"]


@pytest.fixture
def searcher(store, model):
    embed_library(store, model)
    return Searcher.open(store, model)


def test_embeddings_are_made_once(store, model, searcher, monkeypatch):
    asked = []
    plain = type(model).encode
    monkeypatch.setattr(type(model), "encode", lambda self, texts: asked.extend(texts) or plain(self, texts))
    bank = create_bank(store, "colours", BANK, "test")
    first = embed_queries(store, model, bank)
    assert asked == BANK
    np.testing.assert_array_equal(embed_queries(store, model, bank).vectors, first.vectors)
    add_queries(store, "colours", ["very blue"], "test")
    embed_queries(store, model, read_bank(store, "colours"))
    assert asked == [*BANK, "very blue"]
    remove_queries(store, "colours", ["red"])
    left = embed_queries(store, model, read_bank(store, "colours"))
    assert len(left.ids) == len(BANK) + 1  # the dropped one is still at hand
    assert asked == [*BANK, "very blue"]


def cut(data):
    return data[:40]


def flip(data):
    """One bit of a number."""
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


@pytest.mark.parametrize("harm", [cut, flip])
def test_a_damaged_cache_is_made_again(store, model, searcher, harm):
    bank = create_bank(store, "colours", BANK, "test")
    work = EmbeddedBank.open(searcher, bank)
    want = work.norm(make_method("dis")).correction
    for path in bank_cache_dir(store, model, "colours").iterdir():
        path.write_bytes(harm(path.read_bytes()))
    work = EmbeddedBank.open(searcher, bank)
    np.testing.assert_array_equal(work.norm(make_method("dis")).correction.bias, want.bias)


def test_auto_stays_plain_until_a_check_of_this_very_bank_passed(store, model, searcher):
    assert choose_scoring(searcher).norm.label == "none"
    bank = create_bank(store, "colours", BANK, "test")
    assert "not been checked" in str(choose_scoring(searcher).note)
    chosen = {"method": "is", "parameters": {"beta": 5.0}, "betas": {"is": 5.0, "dis": 9.0}}
    save_check(store, bank, "another model", True, chosen)
    assert "not been checked" in str(choose_scoring(searcher).note)
    save_check(store, bank, model.fingerprint, False, chosen)
    assert "did not help" in str(choose_scoring(searcher).note)
    assert choose_scoring(searcher).norm.label == "none"
    save_check(store, bank, model.fingerprint, True, chosen)
    used = choose_scoring(searcher)
    assert used.norm.label == "querybank(colours, 7 queries, method=is, beta=5)"
    assert not used.note
    assert (
        choose_scoring(searcher, "dis").norm.label == "querybank(colours, 7 queries, method=dis, beta=9, k=1)"
    )
    assert choose_scoring(searcher, "dis", beta=3.0).norm.label.endswith("beta=3, k=1)")
    assert choose_scoring(searcher, "none").norm.label == "none"
    add_queries(store, "colours", ["very blue"], "test")
    assert "changed since" in str(choose_scoring(searcher).note)


def test_a_ranking_that_was_chosen_says_that_no_check_speaks_for_its_bank(store, model, searcher):
    bank = create_bank(store, "colours", BANK, "test")
    assert "not been checked with this model and may make results worse" in str(
        choose_scoring(searcher, "dis").note
    )
    assert "is not used" in str(choose_scoring(searcher).note)
    save_check(store, bank, model.fingerprint, True, {"method": "dis", "parameters": {}, "betas": {}})
    assert not choose_scoring(searcher, "dis").note


def test_what_cannot_be_used_is_said(store, searcher):
    with pytest.raises(BankError, match="bank build"):
        choose_scoring(searcher, "dis")
    create_bank(store, "colours", BANK, "test")
    with pytest.raises(BankError, match="choose one of auto"):
        choose_scoring(searcher, "better")
    for transductive in ("test-is", "dsl"):
        with pytest.raises(BankError, match="sees all test queries at once, and a search has one"):
            choose_scoring(searcher, transductive)
    with pytest.raises(BankError, match="second bank"):
        choose_scoring(searcher, "dual-is")
    with pytest.raises(BankError, match="no beta"):
        choose_scoring(searcher, "cent", beta=3.0)
    with pytest.raises(BankError, match="colours"):
        choose_scoring(searcher, "dis", bank="shapes")


def test_beta_without_labels_is_remembered_until_the_bank_changes(store, model, searcher, monkeypatch):
    from wordreel.banks import embedded_bank

    create_bank(store, "colours", BANK, "test")
    first = choose_scoring(searcher, "is").norm.label
    monkeypatch.setattr(embedded_bank, "choose_beta_unlabelled", lambda sims: 1 / 0)
    assert choose_scoring(searcher, "is").norm.label == first
    add_queries(store, "colours", ["very blue"], "test")
    with pytest.raises(ZeroDivisionError):
        choose_scoring(searcher, "is")
