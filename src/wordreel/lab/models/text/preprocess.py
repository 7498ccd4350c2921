"""Preprocessing of captions before a tokenizer."""

from __future__ import annotations

_LISTED = """
a about above after again against all am an and any are as at be because been before being below
between both but by can could did do does doing down during each few for from further had has have
having he her here hers herself him himself his how i if in into is it its itself just me more most
my myself no nor not now of off on once only or other our ours ourselves out over own s same she
should so some such t than that the their theirs them themselves then there these they this those
through to too under until up very was we were what when where which while who whom why will with
would you your yours yourself yourselves
"""
STOP = "."
STOP_WORDS = frozenset(_LISTED.split())


def without_stop_words(text: str) -> str:
    """The words that carry meaning; "." if none do.

    >>> without_stop_words("A man is riding on a horse!"), without_stop_words("to be or not to be")
    ('man riding horse', '.')
    """
    words = ["".join(c for c in word if c.isalnum()) for word in text.split()]
    content_words = [word for word in words if word and word.lower() not in STOP_WORDS]
    return " ".join(content_words) or STOP


def sentence(text: str, most: int = 0) -> str:
    """A caption as the multi-modal transformer's authors write it: a capital, a full stop, `most` words.

    >>> sentence("a DOG  runs")
    'A dog runs.'
    """
    words = text.split()
    line = " ".join(words[:most] if most else words).strip()
    if not line or line[-1] not in ".?!":
        line += STOP
    return line.capitalize()
