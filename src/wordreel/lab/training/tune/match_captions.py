"""A user's captions as they come: which of them can be used, and of which videos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.catalogue.named_contents import NamedContents
from wordreel.catalogue.records import StoredFile
from wordreel.errors import DatasetError, NextStep

LEAST = 20  # captioned videos
MOST_EACH = 20  # captions of one video that are looked at
MOST = 20_000  # captions altogether
NOTHING = {"", "nan", "none", "null", "n/a", "-"}  # what spreadsheets write where there is no caption
LONGEST = 10_000  # characters, as of a query


@dataclass(frozen=True)
class MatchedCaptions:
    """Captions by the hash of their video's bytes."""

    texts: dict[str, tuple[str, ...]]
    missing: tuple[str, ...]  # names that are no file of the library
    blank: int  # captions without a word
    left: int  # captions that were left out because there are enough

    @property
    def count(self) -> int:
        return sum(map(len, self.texts.values()))


def match(
    files: Iterable[StoredFile], captions: Mapping[str, Sequence[str]], seed: int = 0
) -> MatchedCaptions:
    """Captions of the library's videos, matched by `NamedContents`; files of the same bytes are one video."""
    named = NamedContents.of(files)
    matched: dict[str, list[str]] = {}
    missing, blank = [], 0
    for name, texts in captions.items():
        content = named.find(name)
        if content is None:
            missing.append(name)
            continue
        tidy = [" ".join(text.split())[:LONGEST] for text in texts]
        worded = [text for text in tidy if text.lower() not in NOTHING and any(c.isalnum() for c in text)]
        blank += len(tidy) - len(worded)
        matched.setdefault(content, []).extend(worded)
    distinct = {content: list(dict.fromkeys(texts)) for content, texts in matched.items() if texts}
    _check(distinct, missing, blank, len(captions))
    return _some(distinct, tuple(missing), blank, seed)


def _check(matched: Mapping[str, Sequence[str]], missing: Sequence[str], blank: int, named: int) -> None:
    if not named:
        raise DatasetError("the file has no captions; it needs a line for each: file,caption")
    if not matched and not blank:
        raise DatasetError(
            f"none of the {named} captioned names is a file of this library (the first is {missing[0]!r})",
            NextStep("compare them with the files of the library", "list"),
        )
    if not matched:
        raise DatasetError(f"all {blank} captions of this library's videos are empty; write some words")
    if len(matched) < LEAST:
        also = f" ({len(missing)} captioned names are not in the library)" if missing else ""
        raise DatasetError(
            f"{len(matched)} videos of this library have captions{also}; at least {LEAST} are needed, so "
            "that some can be held out to see whether tuning helps. Caption more videos"
        )


def _some(
    matched: Mapping[str, list[str]], missing: tuple[str, ...], blank: int, seed: int
) -> MatchedCaptions:
    """At most so many captions of each video, drawn at random, so that thousands take minutes."""
    each = max(min(MOST_EACH, MOST // len(matched)), 1)
    rng = np.random.default_rng(seed)
    selected = {}
    for content in sorted(matched):  # whatever the order of the file
        texts = matched[content]
        selected[content] = tuple(texts[n] for n in np.sort(rng.permutation(len(texts))[:each]))
    return MatchedCaptions(
        selected, missing, blank, sum(map(len, matched.values())) - sum(map(len, selected.values()))
    )
