"""Spoken and on-screen words, tags and notes, matched as words: names that no embedding knows still count.

    coverage(q, clip) = Σ idf(t) over query terms t heard or read in the clip / Σ idf(t) over all terms
    bonus(q, clip)    = strength · coverage · (1 − e^(−matched / 1.5))

The last factor gives one common word, matched by chance, half the weight of three matched together. Cost: one
full-text lookup per term and one for all words in order; a snapshot caches the lines of the last ones
(`LibrarySnapshot.term_matches`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.records import StoredClip, WordRow
from wordreel.search.segments import distinct
from wordreel.types import Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot

STRENGTH = 0.45
OBJECT_BYTES = 1024  # of `TermMatches` beside its arrays, about
MOST_LINES = 10_000  # looked at for each term, and the newest of more
STOP_WORDS = frozenset(
    """
    a an and are as at be been being but by can could did do does doing for from had has have he her
    here hers him his how i if in into is it its me my no not of off on onto or our out over own she
    should so some somebody someone something than that the their them then there these they this
    those through to too under up very was we were what when where which while who whom whose why
    will with without would you your
    """.split()  # noqa: SIM905
)


def terms_of(text: str) -> list[str]:
    """Return the words of a query worth looking up, in order, once each.

    >>> terms_of("Which platform does the train to Vienna leave from?")
    ['platform', 'train', 'vienna', 'leave']
    """
    return list(dict.fromkeys(word for word in _words(text) if word not in STOP_WORDS))


def literal_phrase(text: str) -> str:
    """Return all words of a query in order, without the stop words around them.

    Stop words stay if there are no other words.

    >>> literal_phrase("the train to Vienna"), literal_phrase("To be, or not to be")
    ('train to vienna', 'to be or not to be')
    """
    words = _words(text)
    telling = [place for place, word in enumerate(words) if word not in STOP_WORDS] or [0, len(words) - 1]
    return " ".join(words[telling[0] : telling[-1] + 1])


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def bonus(terms: Mapping[str, int], matched: Iterable[str], videos: int) -> float:
    """Compute the bonus by the module's formula.

    `terms` maps each query term to the number of videos that hold it.

    >>> round(bonus({"dog": 1, "barks": 0}, ["dog"], videos=10), 3)
    0.094
    """
    idf = {term: math.log(1 + videos / (1 + count)) for term, count in terms.items()}
    hit = set(matched)
    total = sum(idf.values())
    if not hit or total == 0:
        return 0.0
    coverage = sum(idf[term] for term in hit) / total
    return STRENGTH * coverage * (1 - math.exp(-len(hit) / 1.5))


@dataclass(frozen=True, eq=False)
class TermMatches:
    """The lines that hold a term, and the items that they fall into."""

    ids: Int64  # of the lines (`LibraryStore.find_lines`)
    of: Int64  # number of each line's video, -1 where it cannot be found
    items: Int64  # gallery rows, in order
    videos: int  # that can be found and hold the term

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays, about."""
        return self.ids.nbytes + self.of.nbytes + self.items.nbytes + OBJECT_BYTES

    @classmethod
    def find(cls, snapshot: LibrarySnapshot, term: str) -> TermMatches:
        """Look a term up."""
        lines = snapshot.store.find_lines([term], MOST_LINES)
        of = snapshot.video_numbers_of(lines.contents)
        items = snapshot.overlapping_rows(of, lines.starts, lines.ends)
        videos = len(distinct(snapshot.video[items]))
        return cls(np.array(lines.ids, np.int64), of, items, videos)


@dataclass(frozen=True, eq=False)
class LexicalMatches:
    """Each query term with the lines that contain it, and the bonus that they give to items.

    `items` are the gallery rows that have a bonus, in order, and `values` their bonus; `literal` are the
    lines that hold all words of the query in order.
    """

    terms: Mapping[str, TermMatches]
    items: Int64
    values: Float32
    literal: TermMatches

    def of(self, rows: Int64) -> Float32:
        """Return the bonus of each of these gallery rows, 0 where there is none."""
        if not len(self.items):
            return np.zeros(len(rows), np.float32)
        at = np.minimum(np.searchsorted(self.items, rows), len(self.items) - 1)
        return np.where(self.items[at] == rows, self.values[at], np.float32(0))

    def best_line(self, snapshot: LibrarySnapshot, row: int, moment: StoredClip) -> WordRow | None:
        """Return the line of an item that contains the most query terms; None if it is gone since.

        A line in the moment of it that is displayed comes first.
        """
        video = snapshot.video[row]
        matches = [*self.terms.values(), self.literal]
        counts = Counter(line for term in matches for line in term.ids[term.of == video].tolist())
        item, lines = snapshot.items[row], snapshot.store.read_lines(list(counts))
        inside = [line for line in lines if _overlaps(item, lines[line])]
        if not inside:
            return None
        here = {line: _overlaps(moment, lines[line]) for line in inside}
        return lines[max(inside, key=lambda line: (here[line], counts[line], -lines[line].start))]


def lexical_matches(snapshot: LibrarySnapshot, text: str) -> LexicalMatches:
    """Find where the terms of a query are spoken or on screen."""
    phrase = literal_phrase(text)
    terms = snapshot.term_matches(terms_of(text))
    return LexicalMatches(terms, *item_bonus(snapshot, terms), snapshot.term_matches([phrase])[phrase])


def item_bonus(snapshot: LibrarySnapshot, terms: Mapping[str, TermMatches]) -> tuple[Int64, Float32]:
    """Return the gallery rows of items in which some query term is spoken or on screen, and their bonus."""
    counts = {term: matches.videos for term, matches in terms.items()}
    holding = {term: matches.items for term, matches in terms.items() if len(matches.items)}
    if not holding:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    there = np.zeros(len(snapshot.columns), bool)
    for some in holding.values():
        there[some] = True
    every = np.flatnonzero(there)
    names: list[tuple[str, ...]] = [()]
    which = np.zeros(len(every), np.int64)  # of each item, the place among `names` of the terms it holds
    for term, some in holding.items():
        which *= 2
        which[np.searchsorted(every, some)] += 1
        held = np.bincount(which, minlength=2 * len(names)) > 0  # of the kinds of items, those that there are
        which = (np.cumsum(held) - 1)[which]
        kinds = np.flatnonzero(held).tolist()
        names = [names[kind // 2] + ((term,) if kind % 2 else ()) for kind in kinds]
    videos = snapshot.video_count()
    return every, np.array([bonus(counts, held, videos) for held in names], np.float32)[which]


def _overlaps(item: StoredClip, word: WordRow) -> bool:
    return item.whole or (word.start < item.end and word.end > item.start)
