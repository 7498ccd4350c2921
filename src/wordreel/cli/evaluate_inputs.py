"""The options of `wordreel evaluate`, in groups, and what they read."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.common import beta_number
from wordreel.cli.hubness import KeyOption

if TYPE_CHECKING:
    from wordreel.datasets.types import Split
    from wordreel.evaluate.report import ReportRequest
    from wordreel.evaluate.retrieval import Protocol
    from wordreel.hubness import Direction, Method

ARRAYS = (".npy", ".npz", ".safetensors", ".h5", ".hdf5", ".pkl", ".pickle", ".pt", ".pth")
ANNOTATIONS = (".json", ".jsonl", ".csv", ".tsv", ".txt")

DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where the bank is fitted; auto takes a GPU where there is one and the bank is large.",
    ),
]


@dataclass(frozen=True)
class CaptionOptions:
    """Captions of a library's videos."""

    data: Annotated[
        Path | None, typer.Option(help="The folder with the dataset's annotations, for a named protocol.")
    ] = None
    split: Annotated[str | None, typer.Option(help="Which split of the captions.")] = None
    ids: Annotated[
        str | None, typer.Option(help="Only these ids: a file with one a line, or FILE.json:key.key.")
    ] = None


@dataclass(frozen=True)
class GroupingOptions:
    """How the rows of a matrix belong to its columns."""

    captions_per_video: Annotated[
        int | None, typer.Option(help="Of a matrix: neighbouring rows that belong to one video.", min=1)
    ] = None
    counts: Annotated[
        str | None, typer.Option(help="Of a matrix: a file with the number of captions of each video.")
    ] = None
    mask: Annotated[
        Path | None, typer.Option(help="Of a matrix: [videos, captions], 1 for a caption, 0 for padding.")
    ] = None
    key: KeyOption = None

    @property
    def given(self) -> bool:
        return bool(self.captions_per_video or self.counts or self.mask)

    @property
    def each(self) -> str | None:
        return str(self.captions_per_video) if self.captions_per_video else self.counts


@dataclass(frozen=True)
class BankOptions:
    """A normalisation; without a bank there is none, unless the method needs none."""

    bank: Annotated[
        str | None,
        typer.Option(
            help="Report a normalised ranking too, by this bank: a matrix or captions, as the source."
        ),
    ] = None
    bank_ids: Annotated[str | None, typer.Option(help="Only these ids of a bank of captions.")] = None
    method: Annotated[str, typer.Option(help="How the bank is used: dis, is, csls, gc, nnn, …")] = "dis"
    beta: Annotated[str | None, typer.Option(help="A number, or auto.", metavar="NUMBER|auto")] = None
    device: DeviceOption = "auto"

    @property
    def source(self) -> str:
        """What the label calls the bank."""
        name = Path(self.bank or "").name
        return f"{name} of {Path(self.bank_ids).name}" if self.bank_ids else name

    def build(self) -> Method | None:
        """The method, or None where no normalisation is requested."""
        from wordreel.hubness import make_method

        beta = beta_number(self.beta)
        method = make_method(self.method, **({} if beta is None else {"beta": beta}))
        return method if self.bank or method.transductive else None


@dataclass(frozen=True)
class ReportOptions:
    """What is written."""

    title: Annotated[str | None, typer.Option(help="What the report is called.")] = None
    seed: Annotated[
        list[int] | None, typer.Option(help="The seed the model was trained with; stored with the result.")
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="PREFIX", help="Write PREFIX.json, .md, .tex, .html and .ranks.npz."),
    ] = None
    frames: Annotated[bool, typer.Option(help="Put frames of the videos into the page.")] = True
    save: Annotated[Path | None, typer.Option(metavar="SIMS.npy", help="Write a library's similarities.")] = (
        None
    )
    export_trec: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Write the ranking, normalised where there is a bank, as a TREC run."
        ),
    ] = None
    export_qrels: Annotated[
        Path | None, typer.Option(metavar="QRELS", help="Write the right answers as TREC qrels.")
    ] = None
    export_beir: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write queries, corpus and qrels as a BEIR folder, as MTEB reads."
        ),
    ] = None

    @property
    def exports(self) -> bool:
        return bool(self.export_trec or self.export_qrels or self.export_beir)


@dataclass(frozen=True)
class JudgedOptions:
    """Rankings of other systems, and pictures searched by class."""

    qrels: Annotated[
        Path | None,
        typer.Option(help="Of a TREC run: its qrels, as a file or a BEIR folder.", metavar="FILE|FOLDER"),
    ] = None
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Of cub and sop: embeddings [pictures, dim] in the order of the split."),
    ] = None


@dataclass(frozen=True)
class Counting:
    """How the report counts; `v2t` is None where nobody chose."""

    title: str
    directions: tuple[Direction, ...]
    v2t: Protocol | None
    seeds: tuple[int, ...]

    def request(
        self, inputs: list[dict[str, str]], default: Protocol | None = "ce", notes: Sequence[str] = ()
    ) -> ReportRequest:
        from wordreel.evaluate.report import ReportRequest

        protocol = self.v2t or default or "ce"
        return ReportRequest(
            self.title, command(), inputs, self.directions, protocol, self.seeds, tuple(notes)
        )


@dataclass(frozen=True)
class CaptionSource:
    """Captions to read: a file, an address in one, or a named protocol with its data."""

    source: str
    data: Path | None
    split: str | None
    ids: str | None

    def read(self) -> Split:
        from wordreel.datasets import json_address, registry

        split = registry.read(self.source, self.split, self.data)
        if not self.ids:
            return split
        chosen = dict.fromkeys(json_address.read_ids(self.ids))
        items = {item.id: item for item in split.items}
        return replace(split, items=tuple(items[name] for name in chosen if name in items))

    def files(self) -> list[Path]:
        """What is read: one file, or the annotations in a folder."""
        from wordreel.datasets import json_address

        path = self.data or json_address.address_file(self.source)
        if not path.is_dir():
            return [path]
        return sorted(one for one in path.iterdir() if one.suffix.lower() in ANNOTATIONS)

    def inputs(self, what: str) -> list[dict[str, str]]:
        from wordreel.datasets import json_address
        from wordreel.evaluate.report_files import input_of

        inputs = [input_of(what, path) for path in self.files()]
        if self.ids:
            path = (
                json_address.address_file(self.ids)
                if json_address.is_json_address(self.ids)
                else Path(self.ids)
            )
            inputs.append(input_of(f"{what}: ids", path))
        return inputs


def caption_counts(text: str | None, videos: int) -> Any:
    """Captions of each video from a number or a file of numbers; None where they are shared out evenly."""
    from wordreel.evaluate.matrices import read_counts

    if text is None:
        return None
    return [int(text)] * videos if text.isdecimal() else read_counts(text)


def command() -> str:
    """The command line, with files by their base names."""
    return shlex.join(["wordreel", *(Path(a).name if "/" in a else a for a in sys.argv[1:])])
