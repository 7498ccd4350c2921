"""`wordreel train`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.common import JsonOption, counter, long_time, print_json, printable
from wordreel.cli.train_progress import (
    check_out_folders,
    end_progress_line,
    print_data_summary,
    progress_printer,
)
from wordreel.cli.train_search import load_space, run_search
from wordreel.errors import TrainingError

if TYPE_CHECKING:
    import torch

    from wordreel.training.open_data import TrainingPairs, LibrarySource
    from wordreel.training.recipe import Recipe
    from wordreel.training.run import TrainResult
    from wordreel.training.training_data import TrainingData


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name (`wordreel models`) or a .toml file.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the model and the logs go.", show_default=False)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A published tree of features (CE, TeachText, MMT, MoEE)."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="The tree's layout, where it cannot be told.")] = None,
    library: Annotated[
        list[Path] | None,
        typer.Option("--library", "-L", help="A library to train on; several are mixed."),
    ] = None,
    captions: Annotated[
        list[str] | None,
        typer.Option(
            help="Captions of a library's videos: FILE.json, FILE.json:key, .csv, .jsonl or a folder with "
            "captions.json; one for each library. Without, those imported with it."
        ),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="The split to train on, of the captions or of the tree.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Only these ids of the captions: a file, or FILE.json:key.key; - for all."),
    ] = None,
    share: Annotated[
        list[float] | None, typer.Option(help="How often an epoch shows each video of a library.")
    ] = None,
    val_library: Annotated[
        Path | None, typer.Option(help="The library to choose the best epoch on.", show_default="the first")
    ] = None,
    val_captions: Annotated[
        str | None, typer.Option(help="Its captions.", show_default="the first --captions")
    ] = None,
    val_split: Annotated[str | None, typer.Option(help="The split to choose the best epoch on.")] = None,
    val_ids: Annotated[str | None, typer.Option(help="Only these ids of the validation captions.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any value of the recipe: run.epochs=5."),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Several train one model each, in DIR/seed-N.", show_default="the recipe's", min=0),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Short for --set run.epochs=N.", min=0)] = None,
    batch: Annotated[int | None, typer.Option(help="Short for --set run.batch=N.", min=2)] = None,
    lr: Annotated[float | None, typer.Option(help="Short for --set optimiser.lr=X.")] = None,
    teacher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|DIR",
            help="Learn from this teacher (TeachText): a model folder, or a teacher of the tree; several "
            "are averaged.",
            show_default="the recipe's",
        ),
    ] = None,
    denoise: Annotated[
        str | None,
        typer.Option(
            metavar="rank:N|MASK|none",
            help="Leave out captions whose video the teachers rank below N, or those of a mask of the tree.",
            show_default="the recipe's",
        ),
    ] = None,
    start: Annotated[
        Path | None, typer.Option(help="Fine-tune the model in this folder (start.model).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, or auto.")] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a stopped run of the same recipe and data.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run that the folder holds.")
    ] = False,
    search: Annotated[
        Path | None,
        typer.Option(
            metavar="SPACE", help="Search hyper-parameters (ASHA): ce, or a .toml file of your own."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials of a search.", min=1)] = 20,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Where encoded captions are cached for the next run.",
            show_default="$XDG_CACHE_HOME/wordreel/captions",
        ),
    ] = None,
    pack: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the prepared data to one small file instead of training."),
    ] = None,
    packed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Train on a file that --pack wrote; needs no library or weights."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a joint embedding by a recipe, on published features or on libraries with captions.

    The recipe `reel`, or `default`, trains the default model. Stop with Ctrl-C; the same command with
    --resume continues.

    Example: wordreel train ce-msvd --data MSVD --out runs/ce --seed 0 --seed 1 --seed 2

    Example: wordreel train own-ce -L msvd.reel --captions MSVD --split train --val-split val --out runs/own
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise TrainingError("training needs PyTorch: pip install 'wordreel[train]'") from None
    from wordreel.training import recipe as recipes
    from wordreel.training.loop import pick_device
    from wordreel.training.open_data import LibrarySource

    shorthand = {"run.epochs": epochs, "run.batch": batch, "optimiser.lr": lr, "start.model": start}
    changes = [*(set_ or ()), *(f"{key}={value}" for key, value in shorthand.items() if value is not None)]
    if teacher:
        changes.append(f"teach.teachers={json.dumps(teacher)}")
    if denoise is not None:
        changes.append(f"teach.denoise={json.dumps('' if denoise == 'none' else denoise)}")
    made = recipes.load(recipe, changes)
    _check_sources(
        {"--data": data, "--library": library, "--packed": packed},
        {"--kind": kind},
        {"--captions": captions, "--ids": ids, "--share": share, "--val-library": val_library,
         "--val-captions": val_captions, "--val-ids": val_ids},
        {"--split": split, "--val-split": val_split, "--cache": cache},
    )  # fmt: skip
    if data is not None and len(split or ()) > 1:
        raise typer.BadParameter("a tree is trained on one split: give --split once.")
    if wrong := [one for one in share or () if not 0 < one <= 1000]:
        raise typer.BadParameter(
            f"--share says how often an epoch shows a video, between 0 and 1000: not {wrong[0]}."
        )
    running = {"--out": out, "--seed": seed, "--resume": resume, "--overwrite": overwrite, "--search": search}
    _check_work(running, pack, packed)
    seeds = list(dict.fromkeys(seed or [made.run.seed]))
    root = out or Path()
    folders = {one: root / f"seed-{one}" if len(seeds) > 1 else root for one in seeds}
    space = None if search is None else load_space(search, recipe, changes)
    if space is None and pack is None:
        check_out_folders(folders.values(), resume, overwrite)
    if packed is not None:
        prepared = _unpacked(made, packed)
    else:
        libraries = [
            LibrarySource(where, told, part, None if some == "-" else some, share=often or 1.0)
            for where, told, part, some, often in _rows(library or [], captions, split, ids, share)
        ]
        measured = _validation(libraries, val_library, val_captions, val_split, val_ids)
        place = pick_device(device)
        opened = _opened(made, data, kind, split[0] if split else None, val_split, libraries, measured, place)
        prepared = _prepared(made, opened, place, cache)
    if pack is not None:
        _pack(pack, made, prepared)
    elif space is not None:
        run_search(recipe, changes, prepared, space, root, trials, device, as_json)
    else:
        results = {
            number: _train(made.with_seed(number), prepared, folder, device, resume)
            for number, folder in folders.items()
        }
        _report(results, as_json)


def _check_sources(
    sources: dict[str, Any], tree: dict[str, Any], library: dict[str, Any], both: dict[str, Any]
) -> None:
    """One source of data, and no option that this source has no use for."""
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise typer.BadParameter(
            "say what to train on: --data DIR, --library LIB --captions FILE, or --packed FILE."
        )
    idle = {"--data": library, "--library": tree, "--packed": {**tree, **library, **both}}[given[0]]
    wrong = [name for name, value in idle.items() if value]
    if wrong and given[0] == "--data":
        raise typer.BadParameter(f"{', '.join(wrong)} go with --library; a tree has splits: --split NAME.")
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)} cannot be used with {given[0]}.")


def _check_work(running: dict[str, Any], pack: Path | None, packed: Path | None) -> None:
    """Either packing, searching or training, and no option that would have no effect."""
    given = [name for name, value in running.items() if value]
    if pack is not None and (packed is not None or given):
        others = ", ".join([*given, *(["--packed"] if packed else [])])
        raise typer.BadParameter(f"--pack writes the data and trains nothing: leave out {others}.")
    if pack is None and "--out" not in given:
        raise typer.BadParameter("say where the model goes: --out DIR.")
    if "--search" in given and (idle := [name for name in given if name not in ("--search", "--out")]):
        raise typer.BadParameter(
            f"{', '.join(idle)} cannot be used with --search: the same command continues a search; "
            "--set run.seed=N sets its seed."
        )
    if "--resume" in given and "--overwrite" in given:
        raise typer.BadParameter("--resume continues the run that --overwrite would replace: give one.")


def _prepared(
    recipe: Recipe, opened: TrainingPairs, device: torch.device, cache: Path | None
) -> TrainingData:
    from wordreel.training.training_data import prepare

    return prepare(
        recipe,
        opened.train,
        opened.val,
        teachers=opened.teachers,
        on_progress=counter("captions encoded"),
        device=device,
        cache=cache or _cache(),
    )


def _unpacked(recipe: Recipe, path: Path) -> TrainingData:
    from wordreel.training.open_data import TrainingPairs, with_teachers
    from wordreel.training.pack_file import load_pack

    data = with_teachers(recipe, load_pack(path, recipe))
    print_data_summary(recipe, TrainingPairs(data.train, data.val))
    return data


def _pack(path: Path, recipe: Recipe, data: TrainingData) -> None:
    from wordreel.training.pack_file import save_pack

    save_pack(path, recipe, data)
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB")


def _rows(library: list[Path], *others: list[Any] | None) -> list[tuple[Any, ...]]:
    """One row per library; an option given once is for all of them."""
    columns = []
    for values in others:
        given = list(values or [None])
        if len(given) not in (1, len(library)) and library:
            raise typer.BadParameter(
                f"{len(given)} values for {len(library)} libraries: give one or as many."
            )
        columns.append(given * len(library) if len(given) == 1 else given)
    return list(zip(library, *columns, strict=True)) if library else []


def _validation(
    sources: list[LibrarySource],
    library: Path | None,
    captions: str | None,
    split: str | None,
    ids: str | None,
) -> list[LibrarySource]:
    from wordreel.training.open_data import LibrarySource

    if not sources or not (library or captions or split or ids):
        return []
    first = sources[0]
    return [LibrarySource(library or first.library, captions or first.captions, split, ids)]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordreel" / "captions"


def _opened(
    recipe: Recipe,
    data: Path | None,
    kind: str | None,
    split: str | None,
    val_split: str | None,
    sources: list[LibrarySource],
    val_sources: list[LibrarySource],
    device: torch.device,
) -> TrainingPairs:
    from wordreel.training.open_data import open_libraries, open_published

    if data is not None:
        splits = (split or recipe.data.train, val_split or recipe.data.val)
        opened = open_published(recipe, data, kind, splits, device)
    else:
        opened = open_libraries(recipe, sources, val_sources, device)
    print_data_summary(recipe, opened)
    return opened


def _train(recipe: Recipe, data: TrainingData, out: Path, device: str, resume: bool) -> TrainResult:
    from wordreel.training.interrupt import TrainingInterrupted
    from wordreel.training.loop import train as run

    try:
        result = run(recipe, data, out, device=device, resume=resume, on_progress=progress_printer())
        if resume and not result.steps:
            typer.echo(f"the run in {printable(out)} is complete: nothing is left to do", err=True)
        return result
    except TrainingInterrupted as stopped:
        end_progress_line()
        typer.echo(f"wordreel: {stopped}; the same command with --resume continues from there", err=True)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:  # a second one, or one in several processes: nothing was saved now
        end_progress_line()
        typer.echo(
            "wordreel: stopped at once; steps since the last saved state are lost, and the same command with "
            "--resume continues from it",
            err=True,
        )
        raise typer.Exit(130) from None
    finally:
        end_progress_line()


def _report(results: dict[int, TrainResult], as_json: bool) -> None:
    rows = []
    for seed, found in results.items():
        figures = found.figures.to_json() if found.figures is not None else None
        rows.append(
            {
                "seed": seed,
                "best": str(found.best),
                "epoch": found.epoch,
                "score": found.score,
                "figures": figures,
                "seconds": round(found.seconds, 1),
                "steps_per_second": round(found.steps_per_second, 2),
            }
        )
    if as_json:
        print_json(rows)
        return
    for seed, found in results.items():
        line = f"seed {seed}: epoch {found.epoch}, {long_time(found.seconds)}"
        if found.figures is not None:
            t, v = found.figures.t2v, found.figures.v2t
            line += (
                f"; validation, no post-processing: text to video R@1 {t.r1:.1f} R@5 {t.r5:.1f} "
                f"R@10 {t.r10:.1f} MdR {t.median_rank:g}; video to text {v.r1:.1f} {v.r5:.1f} {v.r10:.1f}"
            )
        typer.echo(line)
        typer.echo(f"  wrote {printable(found.best)}")
