"""A bank is measured on queries that are not in it, chosen and judged on different videos."""

import numpy as np
import pytest

from wordreel.banks import check as check_module
from wordreel.banks.check import check_bank
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.catalogue.banks import create_bank
from wordreel.embed.embed_library import embed_library
from wordreel.errors import BankError
from wordreel.retrieval.rankings import Ranking
from wordreel.search.searcher import Searcher

BANK = ["red", "red and green", "blue", "green things", "a red dog", "blue blue", "nothing at all"]


@pytest.fixture
def work(store, model):
    embed_library(store, model)
    searcher = Searcher.open(store, model)
    return EmbeddedBank.open(searcher, create_bank(store, "colours", BANK, "the test"))


@pytest.fixture
def captions(store):
    rng = np.random.default_rng(0)
    words = ["red", "green", "blue", "dark", "light"]
    files = sorted({file.path.rpartition("/")[2] for file in store.files()})
    return {
        name: [f"{' '.join(rng.permutation(words)[:3])} number {name} {n}" for n in range(30)]
        for name in files
    }


def test_the_figures_are_those_of_the_second_half(work, captions):
    report = check_bank(work, captions, ["dis", "cent"])
    assert [row.method for row in report.rows] == ["none", "dis", "cent"]
    searcher = work.searcher
    named = {file.path.rpartition("/")[2]: file.content for file in searcher.store.files()}
    ranks = []
    for name, texts in captions.items():
        if check_module._first_half(named[name]):
            continue
        for text in texts:
            scores = dict(zip(searcher.snapshot.contents(), searcher.scores([text])[0], strict=True))
            own = scores[named[name]]
            above = sum(s > own for s in scores.values())
            level = sum(s == own for s in scores.values()) - 1
            ranks.append(1 + above + level / 2)
    plain = report.rows[0]
    assert report.queries == len(ranks)
    assert report.choosing_queries == sum(map(len, captions.values())) - len(ranks)
    assert pytest.approx(100 * np.mean(np.array(ranks) == 1)) == plain.R1
    assert plain.MdR == np.median(ranks)
    assert plain.difference == 0
    assert set(report.betas) == {"dis"}


def test_captions_that_are_in_the_bank_do_not_count(work, captions):
    name = next(iter(captions))
    more = {**captions, name: [*captions[name], "red", " a  red dog "]}
    assert check_bank(work, more, ["cent"]).in_bank == 2
    assert check_bank(work, captions, ["cent"]).in_bank == 0


def test_beta_can_be_held(work, captions):
    assert check_bank(work, captions, ["dis", "is"], beta=7.0).betas == {"dis": 7.0, "is": 7.0}


def test_too_little_to_go_by_is_refused(work, captions):
    few = {name: texts[:2] for name, texts in captions.items()}
    with pytest.raises(BankError, match="too few"):
        check_bank(work, few, ["dis"])
    with pytest.raises(BankError, match="cannot check dsl"):
        check_bank(work, captions, ["dsl"])


def ranking(asked, ranks):
    """A ranking with these ranks, whatever it retrieved."""
    count = len(asked.texts)
    return Ranking(len(asked.contents), 10, ranks, np.zeros((count, 1), np.int64))


@pytest.mark.parametrize(
    ("fixed", "passed", "said"),
    [
        (1.0, True, "use it"),  # every answer first
        (9.0, False, "no method beat plain"),  # every answer last
        (2.0, False, "no method beat plain"),  # the same
    ],
)
def test_the_verdict_follows_the_ranks(work, captions, monkeypatch, fixed, passed, said):
    def measured(work, asked, methods, progress):
        count = len(asked.texts)
        ranks = [np.full(count, 2.0), *(np.full(count, fixed) for _ in methods[1:])]
        return [ranking(asked, one) for one in ranks]

    # One video chooses, six judge: fewer could not show anything, whatever their ranks.
    alone = work.searcher.snapshot.contents()[0]
    monkeypatch.setattr(check_module, "_first_half", lambda content: content == alone)
    monkeypatch.setattr(check_module, "_rank", measured)
    report = check_bank(work, captions, ["cent"])
    assert report.passed == passed
    assert said in report.verdict


def test_a_gain_that_costs_first_places_does_not_pass(work, captions, monkeypatch):
    def measured(work, asked, methods, progress):
        count = len(asked.texts)
        plain = np.where(np.arange(count) % 4 == 0, 1.0, 9.0)
        return [ranking(asked, plain), ranking(asked, np.full(count, 4.0))]

    monkeypatch.setattr(check_module, "_rank", measured)
    report = check_bank(work, captions, ["cent"])
    assert not report.passed
    assert "lowered R@1" in report.verdict
