"""Quoted and excluded words, full matches of the words, and what of a query was not understood."""

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.errors import QueryError
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.scoring import PLAIN, Scoring
from wordreel.search.words.query_terms import QueryWords, resolve_terms, split_words
from wordreel.search.words.understanding import understand


def always(value):
    return lambda scores, rows, rivals: np.full(len(rows), value, np.float32)


def say(store, path, text, start=0.0, end=5.0):
    """Let a video say or show these words."""
    store.catalogue.run(
        "INSERT INTO words (content, expert, start, end, text, score) VALUES (?, 'talk', ?, ?, ?, 1.0)",
        store.file(path).content, start, end, text,
    )  # fmt: skip


def ask(searcher, text, confidence=None, **fields):
    """As every front end asks."""
    query = resolve_terms(searcher.store, Query(text, limit=100, **fields))
    return searcher.search(query, Scoring(PLAIN, confidence))


@pytest.fixture
def worst(searcher, films):
    """The path of the film that fits "red" least; it says so."""
    path = next(hit.path for hit in reversed(find(searcher, "red", 100)) if hit.path.suffix == ".mp4")
    say(searcher.store, path, "Look: the red sails of 4.4 millones vendidos!")
    return path


# Full matches


@pytest.mark.parametrize(
    ("text", "sureness", "first"),
    [
        ("red sails", 0.4, True),  # whatever scores more is a guess
        ("the red sails", 0.4, True),
        ("red sails", 0.9, False),
        ("millones vendidos", 0.9, True),  # nothing is better than a guess for words that are not understood
        ("sails red", 0.4, False),  # in another order
    ],
)
@pytest.mark.parametrize("moments", [False, True])
def test_a_full_match_comes_first_unless_something_sure_is_against_it(
    searcher, worst, text, sureness, first, moments
):
    hits = find(searcher, text, 100, confidence=always(sureness), moments=moments)
    assert (hits[0].path == worst) is (first or "red" not in text)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    confidences = [hit.confidence for hit in hits]
    assert confidences == sorted(confidences, reverse=True)
    for hit in hits:
        assert sum(reason.share for reason in hit.why) == pytest.approx(hit.score, abs=1e-5)
    if first:
        assert any("red sails" in reason.what for reason in hits[0].why)


def test_a_full_match_of_stop_words_is_found(searcher, films):
    say(searcher.store, films[3], "To be, or not to be.")
    assert find(searcher, "to be or not to be", confidence=always(0.4))[0].path == films[3]


@pytest.mark.parametrize("fields", [{}, {"moments": True}, {"then": "blue"}])
def test_the_time_of_a_reason_lies_inside_its_moment(searcher, films, fields):
    say(searcher.store, films[-1], "green sails", 1.0, 60.0)  # over several clips
    hits = find(searcher, "green sails", 100, **fields)
    timed = [(hit, reason.at) for hit in hits for reason in hit.why if reason.at is not None]
    assert any("green sails" in reason.what for hit, _ in timed for reason in hit.why)
    assert all(hit.start <= at[0] <= at[1] <= hit.end for hit, at in timed if hit.kind != "image")


# Quoted words


def test_quoted_words_must_occur(searcher, worst):
    assert len(ask(searcher, "red sails")) > 1
    assert [hit.path for hit in ask(searcher, '"red sails"')] == [worst]
    assert [hit.path for hit in ask(searcher, 'blue "Red Sails"', moments=True)] == [worst]
    assert not ask(searcher, '"sails red"')
    assert not ask(searcher, 'red "sails"', filters=Filters(kind="image"))


def test_quoted_words_of_a_pair_belong_to_their_moment(searcher, films):
    path = films[-1]  # of several clips
    end = searcher.store.clips(searcher.store.file(path).content)[-1].end
    say(searcher.store, path, "first words", 0.0, 1.0)
    say(searcher.store, path, "last words", end - 1, end)
    (pair,) = ask(searcher, 'red "first words"', then='"last words"')
    assert (pair.path, pair.start, pair.then[1]) == (path, 0.0, end)
    assert not ask(searcher, 'red "last words"', then='"first words"')


# Excluded words


@pytest.mark.parametrize(
    "text", ["red -sails", "red without a sail", "red without sails", 'red -"red sails"']
)
def test_excluded_words_that_are_said_leave_the_moment_out(searcher, worst, text):
    every = {(hit.path, hit.start) for hit in ask(searcher, "red", moments=True)}
    left = {(hit.path, hit.start) for hit in ask(searcher, text, moments=True)}
    assert left < every
    assert {path for path, _ in every - left} == {worst}
    assert (worst, 0.0) not in left


def test_excluded_words_leave_out_the_moments_that_show_them(searcher):
    """By confidence where there is one; otherwise by what stands out more for them."""

    def moments(text, confidence=None):
        return [(hit.content, hit.start) for hit in ask(searcher, text, confidence, moments=True)]

    def upper_half(scores, rows, rivals):
        return np.where(scores > np.median(rivals.scores), 0.3, 0.1).astype(np.float32)

    blue = moments("blue")
    for confidence in (None, upper_half):
        left = moments("red -blue", confidence)
        assert blue[-1] in left
        assert blue[0] not in left


def test_words_that_only_exclude_are_refused(searcher):
    for text in ("-dog", "not a dog", "without a car"):
        with pytest.raises(QueryError, match="only what must not be there"):
            ask(searcher, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a dog that is not a poodle", QueryWords("a dog that is", (), ("poodle",))),
        ("a well-known man - smiling", QueryWords("a well-known man - smiling")),
        ("do not enter", QueryWords("do not enter")),
        ("-5 degrees", QueryWords("-5 degrees")),
        ("a dog without", QueryWords("a dog without")),
        ('say "without a car"', QueryWords("say without a car", ("without a car",))),
        ('""', QueryWords("")),
    ],
)
def test_what_is_an_exclusion_and_what_is_not(text, words):
    assert split_words(text) == words


# Understanding


@pytest.mark.parametrize(
    ("text", "understood", "notice"),
    [
        ("a dog catches a frisbee", True, None),
        ("snowboarders at night", True, None),
        ("zzzzqqqq blorp", False, "does not know “zzzzqqqq”, “blorp”"),
        ("a zzzzqqqq dog", True, "does not know “zzzzqqqq”"),
        ("un coche rojo", True, None),
        ("ein rotes Auto", True, None),
        ("voiture rouge", True, None),
        ("červené auto", True, None),
        ("een rode auto", True, None),
        ("um carro vermelho", True, None),
        ("un cane sulla spiaggia", True, None),
        ("mies ja koira", False, "looks like Finnish"),
        ("собака", False, "English, German, French, Czech, Italian, Spanish, Portuguese and Dutch"),
        ("🐶", False, "no words"),
        ("a dog that is not barking", True, "“not” excludes nothing"),
        ("4.4", True, None),
    ],
)
def test_what_was_not_understood_is_said(text, understood, notice):
    found = understand(text)
    assert found.any is understood
    assert (notice in " ".join(found.notices)) if notice else not found.notices


def test_words_of_the_library_need_no_notice(searcher, worst):
    assert not searcher.search(Query("millones vendidos")).notices
    assert searcher.search(Query("millones xyzzy")).notices == (
        "the search does not know “xyzzy”; it finds only where that is said or shown",
    )


def test_nothing_is_sure_for_nonsense_but_its_words(searcher, worst):
    hits = find(searcher, "zzzzqqqq vendidos", confidence=always(0.4))
    assert [hit.confidence > 0 for hit in hits] == [hit.path == worst for hit in hits]
