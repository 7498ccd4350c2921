"""Words that were said or shown, matched as words: names and numbers that no embedding knows still count.

    coverage(q, clip) = Σ idf(t) over query terms t heard or read in the clip / Σ idf(t) over all terms
    bonus(q, clip)    = strength · coverage · (1 − e^(−matched / 1.5))

The last factor lets one common word found by chance weigh half of what three found together do. Cost: one
full-text lookup per term.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

STRENGTH = 0.45
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
    """The words of a query worth looking up, in order, once each.

    >>> terms_of("Which platform does the train to Vienna leave from?")
    ['platform', 'train', 'vienna', 'leave']
    """
    found = re.findall(r"[^\W_]+", text.lower())
    return list(dict.fromkeys(word for word in found if word not in STOP_WORDS))


def bonus(terms: Mapping[str, int], matched: Iterable[str], videos: int) -> float:
    """`terms` maps each query term to the number of videos that hold it; see the module's formula.

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
