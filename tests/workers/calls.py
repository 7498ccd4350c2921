"""Functions and fakes that workers import by name."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes import Colour, FakeFence, Shots, Talk

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


def add_ranks(marker: Path, resumed: bool) -> None:
    """The sum of all ranks + 1; the last process dies in the first world."""
    import sys

    import torch
    import torch.distributed as dist

    from wordreel.lab.training.distributed import init_world

    with init_world("cpu") as world:
        if world.rank == world.size - 1:
            die_once(marker, 0)
        total = torch.tensor([float(world.rank + 1)])
        dist.all_reduce(total)
        print(f"line of {world.rank}", file=sys.stderr)
        print(f"total {total.item():g} of {world.size}, resumed {resumed}")


def refuse(text: str) -> None:
    from wordreel.errors import TrainingError

    raise TrainingError(text)
