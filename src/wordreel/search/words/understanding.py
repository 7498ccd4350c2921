"""What of a query the model cannot understand: unknown words, other languages, negation.

`vocabulary/` holds the words of captions in some languages (`CODE.txt.gz`) and a few frequent words of others
(`others.txt`), which are enough to name a language.
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "cs": "Czech",
    "it": "Italian",
    "es": "Spanish",
    "pt": "Portuguese",
    "nl": "Dutch",
}
"""The languages that the text tower knows words of, by the names of their lists in `vocabulary/`."""

WORD = re.compile(r"[^\W\d_]+")
NEGATION = re.compile(r"\b(no|not|never|nobody|nothing|none|neither|nor|cannot|\w+n['’]t)\b", re.IGNORECASE)
ENDINGS = ("'s", "s", "es", "ed", "d", "ing", "er", "ers", "ly", "y")


@dataclass(frozen=True)
class Understanding:
    """Whether the model understands some word of a query, and what to tell the user about the rest."""

    any: bool = True
    notices: tuple[str, ...] = ()


def understand(text: str, found: Iterable[str] = ()) -> Understanding:
    """Tell what the text tower makes of a text.

    Args:
        text: The words of a query, without its terms, phrases and excluded words.
        found: Words that are said or shown in the library; they need no notice.

    >>> understand("a dog at the beach")
    Understanding(any=True, notices=())
    >>> understand("un coche rojo")
    Understanding(any=True, notices=())
    >>> understand("mies ja koira").notices[0].split(";")[0]
    'this looks like Finnish'
    >>> understand("zzzzqqqq blorp").any
    False
    """
    words = list(dict.fromkeys(WORD.findall(text.lower())))
    if not words:
        has_digits = any(c.isalnum() for c in text)
        return Understanding(has_digits, () if has_digits else (f"there are no words in “{text}”",))
    if not any(_is_latin(word) for word in words):
        return Understanding(False, (f"the search understands {_languages()}; these words are none",))
    known = [word for word in words if _is_known(word)]
    notices = []
    if len(known) < len(words) and (language := _language(words, len(known))) is not None:
        return Understanding(False, (f"this looks like {language}; the search understands {_languages()}",))
    heard = set(found)
    unknown = [word for word in words if word not in known and word not in heard]
    if unknown:
        quoted = ", ".join(f"“{word}”" for word in unknown)
        notices.append(f"the search does not know {quoted}; it finds only where that is said or shown")
    negated = list(dict.fromkeys(match.lower() for match in NEGATION.findall(text)))
    if negated:
        quoted = ", ".join(f"“{word}”" for word in negated)
        notices.append(f"{quoted} excludes nothing here; to exclude a word, write -word or “without a word”")
    return Understanding(bool(known), tuple(notices))


def _languages() -> str:
    *first, last = LANGUAGES.values()
    return f"{', '.join(first)} and {last}"


def _is_latin(word: str) -> bool:
    return all("LATIN" in unicodedata.name(char, "") for char in word)


def _is_known(word: str) -> bool:
    forms = {word, *(word.removesuffix(ending) for ending in ENDINGS)}
    forms |= {f"{form}e" for form in forms}
    return any(not forms.isdisjoint(_vocabulary(code)) for code in LANGUAGES)


def _language(words: list[str], known: int) -> str | None:
    """Return the language that has more of the words than the understood ones have."""
    counts = {name: sum(word in some for word in words) for name, some in _foreign().items()}
    name = max(counts, key=lambda name: counts[name])
    return name if counts[name] > known else None


@lru_cache
def _vocabulary(code: str) -> frozenset[str]:
    data = files("wordreel.search.words").joinpath("vocabulary", f"{code}.txt.gz").read_bytes()
    return frozenset(gzip.decompress(data).decode().splitlines())


@lru_cache
def _foreign() -> dict[str, frozenset[str]]:
    others = files("wordreel.search.words").joinpath("vocabulary", "others.txt").read_text(encoding="utf-8")
    named = (line.split(": ", 1) for line in others.splitlines())
    return {name: frozenset(words.split()) for name, words in named}
