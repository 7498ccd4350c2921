"""Functions and fakes that workers import by name."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.library.fakes import Colour, FakeFence, Shots, Talk

POISON = "poison"
MADE = {"colour": Colour, "talk": Talk, "shots": Shots}


def load_fake(name: str):
    return MADE[name]()


@contextmanager
def fence() -> Iterator[FakeFence]:
    yield FakeFence(on_stream=_die_of_poison)


@contextmanager
def slow_fence() -> Iterator[FakeFence]:
    yield FakeFence(delay=0.02, on_stream=_die_of_poison)


def _die_of_poison(path: str) -> None:
    """Die of a poisoned file always, and once where the file says so."""
    if POISON in Path(path).name:
        os._exit(9)
    if "unlucky" in Path(path).name:
        die_once(Path(path).with_suffix(".died"), 0)


def die_once(marker: Path, value: int) -> int:
    if not marker.exists():
        marker.touch()
        os._exit(1)
    return value


def die() -> None:
    os._exit(1)


def late_square(number: int) -> int:
    time.sleep(0.02 if number == 0 else 0.0)
    return number * number


def fail(text: str) -> None:
    raise ValueError(text)


def count_to(number: int, report) -> int:
    for step in range(number):
        report(step)
    return number
