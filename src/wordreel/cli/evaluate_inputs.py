"""What `wordreel evaluate` was asked to measure, from its options."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.cli.common import beta_number

if TYPE_CHECKING:
    from wordreel.datasets.types import Split
    from wordreel.evaluate.report_build import Asked

ARRAYS = (".npy", ".npz", ".safetensors", ".h5", ".hdf5", ".pkl", ".pickle", ".pt", ".pth")
ANNOTATIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class About:
    """What the report is called and how it counts; `v2t` is None where nobody chose."""

    title: str
    ways: tuple[Any, ...]
    v2t: Any
    seeds: tuple[int, ...]

    def asked(self, inputs: list[dict[str, str]], default: Any = "ce", notes: Sequence[str] = ()) -> Asked:
        from wordreel.evaluate.report_build import Asked

        return Asked(
            self.title, command(), inputs, self.ways, self.v2t or default or "ce", self.seeds, tuple(notes)
        )


@dataclass(frozen=True)
class Norm:
    """A normalisation as it was asked for; without a bank there is none, unless the method needs none."""

    bank: str | None
    ids: str | None
    method: str
    beta: str | None

    @property
    def source(self) -> str:
        """What the label calls the bank."""
        name = Path(self.bank or "").name
        return f"{name} of {Path(self.ids).name}" if self.ids else name

    def made(self) -> Any:
        """The method, or None where no normalisation is wanted."""
        from wordreel.hubness import make_method

        beta = beta_number(self.beta)
        way: Any = make_method(self.method, **({} if beta is None else {"beta": beta}))
        return way if self.bank or way.transductive else None


@dataclass(frozen=True)
class Captioned:
    """Captions as they were asked for."""

    source: str
    data: Path | None
    split: str | None
    ids: str | None

    def read(self) -> Split:
        from wordreel.datasets import addresses, registry

        found = registry.read(self.source, self.split, self.data)
        if not self.ids:
            return found
        wanted = dict.fromkeys(addresses.read_ids(self.ids))
        items = {item.id: item for item in found.items}
        return replace(found, items=tuple(items[name] for name in wanted if name in items))

    def files(self) -> list[Path]:
        """What is read: one file, or the annotations that lie in a folder."""
        from wordreel.datasets import addresses

        place = self.data or addresses.file_of(self.source)
        if not place.is_dir():
            return [place]
        return sorted(path for path in place.iterdir() if path.suffix.lower() in ANNOTATIONS)

    def inputs(self, what: str) -> list[dict[str, str]]:
        from wordreel.datasets import addresses
        from wordreel.evaluate.report_files import input_of

        found = [input_of(what, path) for path in self.files()]
        if self.ids:
            place = addresses.file_of(self.ids) if addresses.is_address(self.ids) else Path(self.ids)
            found.append(input_of(f"{what}: ids", place))
        return found


def counts_of(text: str | None, videos: int) -> Any:
    """Captions of each video from a number or a file of numbers; None where they are shared out evenly."""
    from wordreel.evaluate import matrices

    if text is None:
        return None
    return [int(text)] * videos if text.isdecimal() else matrices.read_counts(text)


def command() -> str:
    """What was typed, with files by their base names."""
    return shlex.join(["wordreel", *(Path(a).name if "/" in a else a for a in sys.argv[1:])])
