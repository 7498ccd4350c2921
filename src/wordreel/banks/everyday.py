"""Everyday queries: what people ask of a folder of videos, for when there is no other bank.

The phrases are in `phrases/`. Actions are paired with changing subjects and places, so that they become
sentences as varied as captions and as short as what is typed in a hurry. The list is the same every time.
"""

from __future__ import annotations

from importlib.resources import files
from itertools import cycle

NAME = "everyday"
PLURAL = ("two men", "some children", "two women", "friends", "a group of people")
ANIMALS_EACH = 5


def queries() -> list[str]:
    """Return the whole list: actions with two subjects and alone, animals, scenes, keywords and wishes.

    >>> texts = queries()
    >>> len(texts) > 900, "a busy crossing" in texts, len(texts) == len(set(texts))
    (True, True, True)
    """
    texts: list[str] = []
    person, setting, animal = cycle(_phrases("people")), cycle(_phrases("places")), cycle(_phrases("animals"))
    for action in _phrases("actions"):
        subject = next(person)
        texts += [
            f"{subject} {'are' if subject in PLURAL else 'is'} {action}",
            f"{next(person)} {action} {next(setting)}",
            action,
        ]
    for doing in _phrases("doings"):
        texts += [f"{next(animal)} {doing}" for _ in range(ANIMALS_EACH)]
    return list(dict.fromkeys([*texts, *_phrases("scenes"), *_phrases("things"), *_phrases("asked")]))


def _phrases(name: str) -> list[str]:
    return files("wordreel.banks").joinpath("phrases", f"{name}.txt").read_text(encoding="utf-8").splitlines()
