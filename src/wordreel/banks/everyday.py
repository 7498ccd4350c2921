"""What people ask a folder of videos: a list of everyday queries, to begin with when there is no other.

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
    """The whole list: every action with two subjects and alone, animals, scenes, keywords and wishes.

    >>> found = queries()
    >>> len(found) > 900, "a busy crossing" in found, len(found) == len(set(found))
    (True, True, True)
    """
    found: list[str] = []
    person, place, animal = cycle(_phrases("people")), cycle(_phrases("places")), cycle(_phrases("animals"))
    for action in _phrases("actions"):
        subject = next(person)
        found += [
            f"{subject} {'are' if subject in PLURAL else 'is'} {action}",
            f"{next(person)} {action} {next(place)}",
            action,
        ]
    for doing in _phrases("doings"):
        found += [f"{next(animal)} {doing}" for _ in range(ANIMALS_EACH)]
    return list(dict.fromkeys([*found, *_phrases("scenes"), *_phrases("things"), *_phrases("asked")]))


def _phrases(name: str) -> list[str]:
    return files("wordreel.banks").joinpath("phrases", f"{name}.txt").read_text(encoding="utf-8").splitlines()
