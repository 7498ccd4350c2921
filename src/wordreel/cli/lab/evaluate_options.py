"""The options of `wordreel evaluate`, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import beta_number
from wordreel.cli.lab.hubness import KeyOption

if TYPE_CHECKING:
    from wordreel.hubness import Direction, Method

ARRAYS = (".npy", ".npz", ".safetensors", ".h5", ".hdf5", ".pkl", ".pickle", ".pt", ".pth")

DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where the bank is fitted; auto takes a GPU where there is one and the bank is large.",
    ),
]


CaptionsPerVideoOption = Annotated[
    int | None, typer.Option(help="Of a matrix: neighbouring rows that belong to one video.", min=1)
]
CountsOption = Annotated[
    str | None, typer.Option(help="Of a matrix: a file with the number of captions of each video.")
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

    captions_per_video: CaptionsPerVideoOption = None
    counts: CountsOption = None
    mask: Annotated[
        Path | None, typer.Option(help="Of a matrix: [videos, captions], 1 for a caption, 0 for padding.")
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(
            help="Of a matrix: cut the videos into this many parts, in their order, and report means over "
            "them, as COCO's 1k figures do (5).",
            min=2,
        ),
    ] = None
    key: KeyOption = None

    @property
    def given(self) -> bool:
        return bool(self.captions_per_video or self.counts or self.mask or self.folds)


METHOD_HELP = (
    "none, dis, is, csls, gc, cent, nnn or sinkhorn with a bank; test-is (inverted softmax) or dsl without "
    "one: those are transductive, they use all test queries"
)


@dataclass(frozen=True)
class BankOptions:
    """Normalisations; without a bank there are only the transductive ones."""

    bank: Annotated[
        list[str] | None,
        typer.Option(
            help="Report a normalised ranking too, by this bank: a matrix or captions, as the source. Repeat "
            "it for several matrices, one each in their order."
        ),
    ] = None
    bank_ids: Annotated[str | None, typer.Option(help="Only these ids of a bank of captions.")] = None
    video_bank: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The bank of the other direction, of a matrix: similarities [bank videos, captions].",
        ),
    ] = None
    method: Annotated[
        list[str] | None,
        typer.Option(help=f"{METHOD_HELP}. Repeat it for several.", show_default="dis"),
    ] = None
    beta: Annotated[
        list[str] | None,
        typer.Option(
            help="A number, or auto; for several methods, one each in their order.",
            metavar="NUMBER|auto",
            show_default="the method's",
        ),
    ] = None
    device: DeviceOption = "auto"

    @staticmethod
    def one(bank: Path | None, method: str | None, beta: str | None) -> BankOptions:
        """One method, or none."""
        if beta is not None and not (bank or method):
            raise typer.BadParameter("a β goes with a bank or a method.")
        return BankOptions(
            bank=None if bank is None else [str(bank)],
            method=None if method is None else [method],
            beta=None if beta is None else [beta],
        )

    @property
    def source(self) -> str:
        """What the label calls the bank."""
        name = Path(self.bank[0]).name if self.bank else ""
        return f"{name} of {Path(self.bank_ids).name}" if self.bank_ids else name

    @property
    def files(self) -> dict[Direction, Path]:
        """The matrices of the banks, of one source."""
        from wordreel.hubness import Direction

        text = {Direction.TEXT_TO_VIDEO: Path(self.bank[0])} if self.bank else {}
        return {**text, Direction.VIDEO_TO_TEXT: self.video_bank[0]} if self.video_bank else text

    def of_source(self, number: int, sources: int) -> BankOptions:
        """The options of one of several matrices: its own banks, or the one of all."""
        for banks in (self.bank, self.video_bank):
            if banks and len(banks) not in (1, sources):
                raise typer.BadParameter("give a bank once, or once for each matrix, in their order.")
        bank, video_bank = self.bank, self.video_bank
        return replace(
            self,
            bank=[bank[number]] if bank and len(bank) > 1 else bank,
            video_bank=[video_bank[number]] if video_bank and len(video_bank) > 1 else video_bank,
        )

    def methods(self) -> list[tuple[Method, bool]]:
        """The methods, and whether β is chosen from the bank; none where no normalisation is requested."""
        if not self.method and not (self.bank or self.video_bank):
            return []
        names = self.method or ["dis"]
        betas: Sequence[str | None] = self.beta or [None] * len(names)
        if len(betas) != len(names):
            raise typer.BadParameter("give --beta once for each --method, in their order.")
        chosen = [chosen_method(name, beta) for name, beta in zip(names, betas, strict=True)]
        for method, _ in chosen:
            if not (self.bank or self.video_bank or method.transductive):
                raise typer.BadParameter(f"{method.name} needs --bank; test-is and dsl need none.")
        return chosen


def chosen_method(name: str, beta: str | None) -> tuple[Method, bool]:
    """A method, and whether its β is chosen from the bank."""
    from wordreel.hubness import make_method

    number = beta_number(beta)
    return make_method(name, **({} if number is None else {"beta": number})), beta == "auto"


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
