"""The options of `wordreel evaluate`, in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wordreel.cli.console.common import beta_number
from wordreel.cli.lab.hubness import KeyOption

if TYPE_CHECKING:
    from wordreel.hubness import Direction, Method

ARRAYS = (".npy", ".npz", ".safetensors", ".h5", ".hdf5", ".pkl", ".pickle", ".pt", ".pth")

DataOption = Annotated[
    Path | None, typer.Option(help="The folder with the annotations of a dataset or protocol that is named.")
]
SplitOption = Annotated[str | None, typer.Option(help="Which split of the captions.")]
IdsOption = Annotated[
    str | None, typer.Option(help="Only the captions of these ids: a file, or FILE.json:key.key.")
]
DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="auto|cpu|cuda",
        help="Where the bank is fitted; auto takes a GPU where there is one and the bank is large.",
    ),
]


@dataclass(frozen=True)
class GroupingOptions:
    """How the rows of a matrix belong to its columns."""

    captions_per_video: Annotated[
        int | None, typer.Option(help="Neighbouring rows that belong to one video.", min=1)
    ] = None
    counts: Annotated[str | None, typer.Option(help="A file with the number of captions of each video.")] = (
        None
    )
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            "--test_query_masks_path",
            metavar="FILE",
            help="[videos, captions], 1 for a caption, 0 for padding.",
        ),
    ] = None
    key: KeyOption = None


FoldsOption = Annotated[
    int | None,
    typer.Option(
        help="Cut the videos into this many parts, in their order, and report means over "
        "them, as COCO's 1k figures do (5).",
        min=2,
    ),
]


METHOD_HELP = (
    "none, dis, is, csls, gc, cent, nnn or sinkhorn with a bank; test-is (inverted softmax) or dsl without "
    "one: those are transductive, they use all test queries"
)


@dataclass(frozen=True)
class BankOptions:
    """The query banks of one or several matrices."""

    bank: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Report a normalised ranking too, by this bank, a matrix as the source. Repeat it for "
            "several matrices, one each in their order.",
        ),
    ] = None
    video_bank: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The bank of the other direction: similarities [bank videos, captions].",
        ),
    ] = None

    @property
    def files(self) -> dict[Direction, Path]:
        """The matrices of the banks, of one source."""
        from wordreel.hubness import Direction

        text = {Direction.TEXT_TO_VIDEO: self.bank[0]} if self.bank else {}
        return {**text, Direction.VIDEO_TO_TEXT: self.video_bank[0]} if self.video_bank else text

    def of_source(self, number: int, sources: int) -> BankOptions:
        """Return the options of one of several matrices: its own banks, or the one of all."""
        chosen = []
        for banks in (self.bank, self.video_bank):
            if banks and len(banks) not in (1, sources):
                raise typer.BadParameter("give a bank once, or once for each matrix, in their order.")
            chosen.append([banks[number]] if banks and len(banks) > 1 else banks)
        return BankOptions(*chosen)


@dataclass(frozen=True)
class MethodOptions:
    """Normalisations; without a bank there are only the transductive ones."""

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

    def chosen(self, banked: bool) -> list[tuple[Method, bool]]:
        """Return the methods, and whether β is chosen from the bank; none without normalisation."""
        if not self.method and not banked:
            if self.beta:
                raise typer.BadParameter("a β goes with a bank or a method.")
            return []
        names = self.method or ["dis"]
        betas: Sequence[str | None] = self.beta or [None] * len(names)
        if len(betas) != len(names):
            raise typer.BadParameter("give --beta once for each --method, in their order.")
        chosen = [
            (make_with_beta(name, beta), beta == "auto") for name, beta in zip(names, betas, strict=True)
        ]
        for method, _ in chosen:
            if not (banked or method.transductive):
                raise typer.BadParameter(f"{method.name} needs a bank; test-is and dsl need none.")
        return chosen


def make_with_beta(name: str, beta: str | None, k: int | None = None) -> Method:
    """Return a method with the parameters that are given; "auto" is the method's own β for now."""
    from wordreel.hubness import make_method

    given = {"beta": beta_number(beta), "k": k}
    return make_method(name, **{key: value for key, value in given.items() if value is not None})


@dataclass(frozen=True)
class CountingOptions:
    """How the report counts."""

    direction: Annotated[
        Literal["t2v", "v2t", "both"],
        typer.Option(help="Direction: text to video (t2v), video to text (v2t) or both."),
    ] = "both"
    v2t: Annotated[
        Literal["ce", "clip"] | None,
        typer.Option(
            help="How video-to-text ranks are counted: by the best caption (ce) or by groups (clip).",
            show_default="the protocol's, or ce",
        ),
    ] = None
    modality: Annotated[
        Literal["video", "image", "audio"] | None,
        typer.Option(help="What is searched, for the tables.", show_default="the protocol's, or video"),
    ] = None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Return the directions to measure."""
        from wordreel.hubness import Direction

        return tuple(Direction) if self.direction == "both" else (Direction(self.direction),)


@dataclass(frozen=True)
class ReportOptions:
    """What the report is called, and where it goes."""

    title: Annotated[str | None, typer.Option(help="What the report is called.")] = None
    seed: Annotated[
        list[int] | None, typer.Option(help="The seed the model was trained with; stored with the result.")
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PREFIX", help="Write the report: PREFIX.json, .md, .tex, .html and .ranks.npz."
        ),
    ] = None


@dataclass(frozen=True)
class ExportOptions:
    """Files for other programs."""

    export_trec: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Write the ranking, normalised where there is a bank, as a TREC run."
        ),
    ] = None
    export_qrels: Annotated[
        Path | None, typer.Option(metavar="QRELS", help="Write the right answers as TREC qrels.")
    ] = None

    def __bool__(self) -> bool:
        return bool(self.export_trec or self.export_qrels)
