"""The options of `wordreel train`, by what they are about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import OnOption

if TYPE_CHECKING:
    from wordreel.lab.training.open_data import LibrarySource


@dataclass(frozen=True)
class DataOptions:
    """What to train and validate on: a published tree, libraries with captions, or videos with captions."""

    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A published tree of features (CE, TeachText, MMT, MoEE); for recipes that read frames, the "
            "annotation files of their dataset.",
        ),
    ] = None
    kind: Annotated[str | None, typer.Option(help="The tree's layout, where it cannot be detected.")] = None
    library: Annotated[
        list[Path] | None,
        typer.Option("--library", "-L", help="A library to train on; several are mixed."),
    ] = None
    videos: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="A folder of videos or pictures named by id, for recipes that read frames; several are "
            "mixed.",
        ),
    ] = None
    captions: Annotated[
        list[str] | None,
        typer.Option(
            help="Captions of a library's videos: FILE.json, FILE.json:key, .csv, .jsonl or a folder with "
            "captions.json; one for each library. Without, those imported with it."
        ),
    ] = None
    split: Annotated[
        list[str] | None,
        typer.Option(help="The split to train on, of the captions or of the tree; - for all captions."),
    ] = None
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Only these ids of the captions: a file, or FILE.json:key.key; - for all."),
    ] = None
    share: Annotated[
        list[float] | None, typer.Option(help="How often an epoch shows each video of a library.")
    ] = None
    val_library: Annotated[
        Path | None, typer.Option(help="The library to choose the best epoch on.", show_default="the first")
    ] = None
    val_videos: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The videos to choose the best epoch on.", show_default="the first"),
    ] = None
    val_captions: Annotated[
        str | None, typer.Option(help="Its captions.", show_default="the first --captions")
    ] = None
    val_split: Annotated[str | None, typer.Option(help="The split to choose the best epoch on.")] = None
    val_ids: Annotated[str | None, typer.Option(help="Only these ids of the validation captions.")] = None

    def check(self, pack: PackOptions) -> None:
        """Refuse more or less than one source of data, and options that this source does not use."""
        tree: dict[str, Any] = {"--kind": self.kind}
        library: dict[str, Any] = {
            "--captions": self.captions,
            "--ids": self.ids,
            "--share": self.share,
            "--val-library": self.val_library,
            "--val-captions": self.val_captions,
            "--val-ids": self.val_ids,
        }
        frames = options_given({"--videos": self.videos, "--val-videos": self.val_videos})
        if frames:
            raise typer.BadParameter(f"{', '.join(frames)} go with recipes that read frames.")
        both: dict[str, Any] = {"--split": self.split, "--val-split": self.val_split, "--cache": pack.cache}
        source = options_given({"--data": self.data, "--library": self.library, "--packed": pack.packed})
        if len(source) != 1:
            raise typer.BadParameter(
                "say what to train on: --data DIR, --library LIB --captions FILE, or --packed FILE."
            )
        unused = {"--data": library, "--library": tree, "--packed": {**tree, **library, **both}}[source[0]]
        wrong = ", ".join(options_given(unused))
        if wrong and self.data is not None:
            raise typer.BadParameter(f"{wrong} go with --library; a tree has splits: --split NAME.")
        if wrong:
            raise typer.BadParameter(f"{wrong} cannot be used with {source[0]}.")
        if self.data is not None and len(self.split or ()) > 1:
            raise typer.BadParameter("a tree is trained on one split: give --split once.")
        for share in self.share or ():
            if not 0 < share <= 1000:
                raise typer.BadParameter(
                    f"--share says how often an epoch shows a video, between 0 and 1000: not {share}."
                )

    def library_sources(self) -> list[LibrarySource]:
        """One for each library; an option given once is for all of them."""
        from wordreel.lab.training.open_data import LibrarySource

        folders = self.library or []
        captions, split, ids, share = (
            one_each(values, len(folders)) for values in (self.captions, self.split, self.ids, self.share)
        )
        return [
            LibrarySource(folder, captions[n], or_all(split[n]), or_all(ids[n]), share=share[n] or 1.0)
            for n, folder in enumerate(folders)
        ]

    def validation_sources(self) -> list[LibrarySource]:
        """The library to validate on, by default the first; none where no option names one."""
        from wordreel.lab.training.open_data import LibrarySource

        if not self.library or not (self.val_library or self.val_captions or self.val_split or self.val_ids):
            return []
        first = self.library_sources()[0]
        library, captions = self.val_library or first.library, self.val_captions or first.captions
        return [LibrarySource(library, captions, self.val_split, self.val_ids)]


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
    start: Annotated[Path | None, typer.Option(help="Fine-tune the model in this folder (start.model).")] = (
        None
    )
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The CLIP that a recipe which reads frames starts from: a Hugging Face folder or a "
            "checkpoint file (start.backbone).",
        ),
    ] = None

    def overrides(self) -> list[str]:
        """The changes as `key=value`, except for the seed."""
        shorthand = {
            "run.epochs": self.epochs,
            "run.batch": self.batch,
            "optimiser.lr": self.lr,
            "start.model": self.start,
            "start.backbone": self.backbone,
        }
        changes = [
            *(self.set_ or ()),
            *(f"{key}={value}" for key, value in shorthand.items() if value is not None),
        ]
        if self.teacher:
            changes.append(f"teach.teachers={json.dumps(self.teacher)}")
        if self.denoise is not None:
            changes.append(f"teach.denoise={json.dumps('' if self.denoise == 'none' else self.denoise)}")
        return changes


@dataclass(frozen=True)
class RunOptions:
    """Where and how to run."""

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

    def check(self, out: Path | None, seed: list[int] | None, pack: PackOptions) -> None:
        """Refuse options that have no effect: a command packs or trains."""
        given = options_given(
            {
                "--out": out,
                "--seed": seed,
                "--resume": self.resume,
                "--overwrite": self.overwrite,
            }
        )
        if pack.pack is not None and (pack.packed is not None or given):
            others = ", ".join([*given, *(["--packed"] if pack.packed else [])])
            raise typer.BadParameter(f"--pack writes the data and trains nothing: leave out {others}.")
        if pack.pack is None and out is None:
            raise typer.BadParameter("say where the model goes: --out DIR.")
        if self.on is None and self.workers is not None:
            raise typer.BadParameter("--workers goes with --on.")
        if self.on is not None and pack.pack is not None:
            raise typer.BadParameter("--on trains: leave out --pack.")
        if self.resume and self.overwrite:
            raise typer.BadParameter("--resume continues the run that --overwrite would replace: give one.")


@dataclass(frozen=True)
class PackOptions:
    """Where prepared data is stored."""

    cache: Annotated[
        Path | None,
        typer.Option(
            help="Where encoded captions are cached for the next run.",
            show_default="$XDG_CACHE_HOME/wordreel/captions",
        ),
    ] = None
    pack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the prepared data to one small file instead of training."),
    ] = None
    packed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Train on a file that --pack wrote; needs no library or weights."),
    ] = None


def options_given(options: dict[str, Any]) -> list[str]:
    """The names of the options that were given."""
    return [name for name, value in options.items() if value]


def or_all(value: str | None) -> str | None:
    """The name of some, or None for all, which is spelled - where another source names some."""
    return None if value == "-" else value


def one_each(values: list[Any] | None, libraries: int) -> list[Any]:
    """One value for each library: a single one is repeated, and None stands for an option not given."""
    given = list(values or [None])
    if len(given) not in (1, libraries) and libraries:
        raise typer.BadParameter(f"{len(given)} values for {libraries} libraries: give one or as many.")
    return given * libraries if len(given) == 1 else given
