"""What can be asked: the checks that all questions share."""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.errors import QueryError
from wordreel.library.banks import BUILD_A_BANK
from wordreel.search.scoring import ConfidenceFunction

LONGEST_QUERY = 10_000  # characters


def checked(
    texts: Sequence[str], limit: int, confidence: ConfidenceFunction | None, min_confidence: float
) -> list[str]:
    """The words of each text, where they can be looked for at all."""
    words = [text.strip() for text in texts]
    for text in words:
        if not text:
            raise QueryError("the query is empty; say what to look for")
        if len(text) > LONGEST_QUERY:
            raise QueryError(f"the query has {len(text)} characters; {LONGEST_QUERY} are allowed")
    check_limit(limit)
    if min_confidence > 0 and confidence is None:
        raise QueryError("a minimum confidence needs a query bank", BUILD_A_BANK)
    return words


def check_limit(limit: int, what: str = "results") -> None:
    if limit < 1:
        raise QueryError(f"cannot show {limit} {what}; ask for 1 or more")
