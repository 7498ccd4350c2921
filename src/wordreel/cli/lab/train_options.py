"""The options that verbs of `wordreel train` share, in groups."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import JsonOption, OnOption

if TYPE_CHECKING:
    from wordreel.lab.training.open_data import Sources
    from wordreel.lab.training.settings import DataSettings


@dataclass(frozen=True)
class CaptionOptions:
    """Captions of the videos to train and validate on."""

    captions: Annotated[
        list[str] | None,
        typer.Option(
            help="Captions of the videos: FILE.json, FILE.json:key, .csv, .jsonl or a folder with "
            "captions.json; one for each source of videos. Without, those imported with a library."
        ),
    ] = None
    split: Annotated[
        list[str] | None, typer.Option(help="The split of the captions to train on; - for all captions.")
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Only these ids of the captions: a file, or FILE.json:key.key; - for all."),
    ] = None
    share: Annotated[
        list[float] | None, typer.Option(help="How often an epoch shows each video of a source.")
    ] = None
    val_captions: Annotated[
        str | None,
        typer.Option(help="The captions to choose the best epoch on.", show_default="the first --captions"),
    ] = None
    val_split: Annotated[str | None, typer.Option(help="The split to choose the best epoch on.")] = None
    val_ids: Annotated[str | None, typer.Option(help="Only these ids of the validation captions.")] = None

    def of_dataset(self, data: DataSettings) -> CaptionOptions:
        """Return the options with a recipe's dataset and splits, where they name none."""
        return replace(
            self,
            captions=[data.dataset],
            split=self.split or [data.train],
            val_split=self.val_split or data.val,
        )

    def sources(
        self,
        kind: str,
        places: list[Path],
        val_place: Path | None,
        annotations: Path | None = None,
    ) -> Sources:
        """Return a source for each place (a library, or a folder of videos) or file of captions.

        An option that is given once is for all of them; validation is on the first unless options say else.
        """
        from wordreel.lab.training.open_data import CaptionedVideos, Sources

        for share in self.share or ():
            if not 0 < share <= 1000:
                raise typer.BadParameter(
                    f"--share says how often an epoch shows a video, between 0 and 1000: not {share}."
                )
        count = len(places) or len(self.captions or ())
        columns: dict[str, list[Any]] = {
            kind: _one_each(places, count),
            "captions": _one_each(self.captions, count),
            "split": [None if name == "-" else name for name in _one_each(self.split, count)],
            "ids": [None if name == "-" else name for name in _one_each(self.ids, count)],
            "share": [share or 1.0 for share in _one_each(self.share, count)],
        }
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        train = [CaptionedVideos(**row, annotations=annotations) for row in rows]
        if not (val_place or self.val_captions or self.val_split or self.val_ids):
            return Sources(train)
        named: dict[str, Any] = {"split": self.val_split, "ids": self.val_ids, "share": 1.0}
        named |= {kind: val_place} if val_place else {}
        named |= {"captions": self.val_captions} if self.val_captions else {}
        return Sources(train, [replace(train[0], **named)])


@dataclass(frozen=True)
class RecipeOptions:
    """What to change in the recipe."""

    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any value of the recipe: run.epochs=5."),
    ] = None
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Several train one model each, in DIR/seed-N.", show_default="the recipe's", min=0),
    ] = None
    epochs: Annotated[int | None, typer.Option(help="Short for --set run.epochs=N.", min=0)] = None
    batch: Annotated[int | None, typer.Option(help="Short for --set run.batch=N.", min=2)] = None
    lr: Annotated[float | None, typer.Option(help="Short for --set optimiser.lr=X.")] = None
    start: Annotated[Path | None, typer.Option(help="Fine-tune the model in this folder (start.model).")] = (
        None
    )

    def overrides(self) -> list[str]:
        """Return the changes as `key=value`, except for the seed."""
        shorthand = {
            "run.epochs": self.epochs,
            "run.batch": self.batch,
            "optimiser.lr": self.lr,
            "start.model": self.start,
        }
        given = [f"{key}={value}" for key, value in shorthand.items() if value is not None]
        return [*(self.set_ or ()), *given]


@dataclass(frozen=True)
class EncodingOptions:
    """What is made of features and captions before training."""

    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|DIR",
            help="Learn from this teacher (TeachText): a model folder, or a teacher of the tree; several "
            "are averaged.",
            show_default="the recipe's",
        ),
    ] = None
    denoise: Annotated[
        str | None,
        typer.Option(
            metavar="rank:N|MASK|none",
            help="Leave out captions whose video the teachers rank below N, or those of a mask of the tree.",
            show_default="the recipe's",
        ),
    ] = None
    pack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the prepared data to one small file instead of training."),
    ] = None

    def overrides(self) -> list[str]:
        """Return the changes to the recipe as `key=value`."""
        changes = [f"teach.teachers={json.dumps(self.teacher)}"] if self.teacher else []
        if self.denoise is not None:
            changes.append(f"teach.denoise={json.dumps('' if self.denoise == 'none' else self.denoise)}")
        return changes


@dataclass(frozen=True)
class RunOptions:
    """Where and how to run."""

    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the model and the logs go.", show_default=False)
    ] = None
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, or auto.")] = "auto"
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a stopped run of the same recipe and data.")
    ] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that the folder holds.")] = (
        False
    )
    on: OnOption = None
    workers: Annotated[
        int | None,
        typer.Option(
            help="How many processes train together.", show_default="one for each core or GPU", min=1
        ),
    ] = None
    as_json: JsonOption = False


def _one_each(values: list[Any] | None, count: int) -> list[Any]:
    """One value for each source: a single one is repeated, and None stands for an option not given."""
    given = list(values or [None])
    if len(given) not in (1, count):
        raise typer.BadParameter(f"{len(given)} values for {count} sources of videos: give one or as many.")
    return given * count if len(given) == 1 else given
