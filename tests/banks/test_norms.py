import numpy as np
import pytest

from wordreel.banks.choice import choose
from wordreel.banks.embedded import embedded, folder_of
from wordreel.banks.norms import BankAtWork
from wordreel.errors import BankError
from wordreel.hubness import make
from wordreel.library.banks import add_queries, drop_queries, keep_check, make_bank, read_bank
from wordreel.search.engine import Engine
from wordreel.search.refresh import refresh

BANK = ["red", "red and green", "blue", "green things", "a red dog", "blue blue", "nothing at all"]


@pytest.fixture
def engine(store, model):
    refresh(store, model)
    return Engine(store, model)


def test_embeddings_are_made_once(store, model, engine, monkeypatch):
    asked = []
    plain = type(model).queries
    monkeypatch.setattr(type(model), "queries", lambda self, texts: asked.extend(texts) or plain(self, texts))
    bank = make_bank(store, "colours", BANK, "test")
    first = embedded(store, model, bank)
    assert asked == BANK
    np.testing.assert_array_equal(embedded(store, model, bank).vectors, first.vectors)
    add_queries(store, "colours", ["very blue"], "test")
    embedded(store, model, read_bank(store, "colours"))
    assert asked == [*BANK, "very blue"]
    drop_queries(store, "colours", ["red"])
    left = embedded(store, model, read_bank(store, "colours"))
    assert len(left.ids) == len(BANK) + 1  # the dropped one is still at hand
    assert asked == [*BANK, "very blue"]


def test_a_damaged_cache_is_made_again(store, model, engine):
    bank = make_bank(store, "colours", BANK, "test")
    work = BankAtWork.open(engine, bank)
    want = work.norm(make("dis")).correction
    for path in folder_of(store, model, "colours").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    work = BankAtWork.open(engine, bank)
    np.testing.assert_array_equal(work.norm(make("dis")).correction.bias, want.bias)


def test_auto_stays_plain_until_a_check_of_this_very_bank_passed(store, model, engine):
    assert choose(engine).norm.label == "none"
    bank = make_bank(store, "colours", BANK, "test")
    assert "not been checked" in choose(engine).note
    chosen = {"method": "is", "parameters": {"beta": 5.0}, "betas": {"is": 5.0, "dis": 9.0}}
    keep_check(store, bank, "another model", True, chosen)
    assert "not been checked" in choose(engine).note
    keep_check(store, bank, model.fingerprint, False, chosen)
    assert "did not help" in choose(engine).note
    assert choose(engine).norm.label == "none"
    keep_check(store, bank, model.fingerprint, True, chosen)
    used = choose(engine)
    assert used.norm.label == "querybank(colours, 7 queries, method=is, beta=5)"
    assert not used.note
    assert choose(engine, "dis").norm.label == "querybank(colours, 7 queries, method=dis, beta=9, k=1)"
    assert choose(engine, "dis", beta=3.0).norm.label.endswith("beta=3, k=1)")
    assert choose(engine, "none").norm.label == "none"
    add_queries(store, "colours", ["very blue"], "test")
    assert "changed since" in choose(engine).note


def test_what_cannot_be_used_is_said(store, engine):
    with pytest.raises(BankError, match="bank build"):
        choose(engine, "dis")
    make_bank(store, "colours", BANK, "test")
    with pytest.raises(BankError, match="choose one of auto"):
        choose(engine, "better")
    with pytest.raises(BankError, match="one"):
        choose(engine, "dsl")
    with pytest.raises(BankError, match="second bank"):
        choose(engine, "dual-is")
    with pytest.raises(BankError, match="no beta"):
        choose(engine, "cent", beta=3.0)
    with pytest.raises(BankError, match="colours"):
        choose(engine, "dis", bank="shapes")


def test_beta_without_labels_is_remembered_until_the_bank_changes(store, model, engine, monkeypatch):
    from wordreel.banks import beta

    make_bank(store, "colours", BANK, "test")
    first = choose(engine, "is").norm.label
    monkeypatch.setattr(beta, "choose_beta_unlabelled", lambda sims: 1 / 0)
    assert choose(engine, "is").norm.label == first
    add_queries(store, "colours", ["very blue"], "test")
    with pytest.raises(ZeroDivisionError):
        choose(engine, "is")
