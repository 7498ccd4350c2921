"""`wordreel use`: which model answers searches."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wordreel.cli.console.common import JsonOption, OpenLibrary, print_result, printable, size_of
from wordreel.cli.console.show_progress import Shown, show_progress, shown
from wordreel.cli.console.terminal import padded
from wordreel.progress import Progress

if TYPE_CHECKING:
    from wordreel.backbones.installed import InstallPlan, Precision
    from wordreel.embed.switch_model import UseResult
    from wordreel.library import Library
    from wordreel.models.laboratory import ConversionOptions


def use(
    library: OpenLibrary,
    model: Annotated[
        str | None,
        typer.Argument(
            help="joint (the default), a CLIP-like backbone (a name of "
            "`wordreel models`, a hub id or folder with ONNX files, or what PyTorch exports to them), a "
            "folder with a trained checkpoint, a published checkpoint of CLIP4Clip or CLIP2Video (.bin) or "
            "of CE, MoEE or MMT (.pth), or a model used before.",
            show_default="show which is in use",
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Of a published checkpoint: what encodes new text. CE and MoEE: a file of word vectors, or "
            "the folder of a GPT; MMT: the vocab.txt of bert-base-cased.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Of a published checkpoint: the config.json of its training run.",
            show_default="the one inside or beside it",
        ),
    ] = None,
    mode: Annotated[
        Literal["released", "paper"],
        typer.Option(
            help="Of a published checkpoint: compute as the released code does, or as the paper says, which "
            "gives other similarities with the same weights.",
        ),
    ] = "released",
    moee_order: Annotated[
        Literal["ordered", "unordered"],
        typer.Option(
            help="Of a checkpoint of MoEE's own code: ordered if it was trained under Python 3.6 or later.",
        ),
    ] = "ordered",
    name: Annotated[
        str | None, typer.Option(help="Of a published checkpoint: what to call the model.")
    ] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "int8"],
        typer.Option(help="Of a backbone: which of its published files are used."),
    ] = "fp32",
    yes: Annotated[
        bool, typer.Option("--yes", help="Download a backbone without asking; needed without a terminal.")
    ] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the models that this library has.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which model answers searches, or use another one.

    The library is embedded from its stored features; only a backbone that is new to the library decodes its
    videos once more, one frame a second. The model is switched when that is done, and searches go on with the
    previous one until then. Stop at any time; the same command resumes. A checkpoint is copied into the
    library. Switching back takes no time.

    Example: wordreel use clip-vit-b-32
    Example: wordreel use runs/mmt-msvd
    Example: wordreel use trained_model.pth --text GoogleNews-vectors-negative300.bin
    """
    from wordreel.models.laboratory import ConversionOptions

    if model is not None and list_all:
        raise typer.BadParameter("name a model, or give --list")
    conversion = ConversionOptions(config, mode, name, text, moee_order)
    if conversion != ConversionOptions() and not (model and Path(model).expanduser().is_file()):
        raise typer.BadParameter(
            "--text, --config, --mode, --moee-order and --name are for a published checkpoint: name its file"
        )
    if model is None:
        _print_models(library, list_all, as_json)
        return
    used = use_with_progress(library, model, conversion, precision=precision, yes=yes, as_json=as_json)
    for note in used.notes if not as_json else ():
        typer.echo(f"Note: {printable(note)}", err=True)
    line = f"{printable(used.name)} ({used.fingerprint}) is in use; {used.embedded} clips were embedded."
    print_result(as_json, used, [line])


def use_with_progress(
    opened: Library,
    model: str,
    conversion: ConversionOptions | None = None,
    *,
    precision: Precision = "fp32",
    yes: bool = False,
    as_json: bool = False,
) -> UseResult:
    """Switch the model, with progress on standard error; Ctrl-C leaves the previous one in use."""
    with show_progress(as_json, describe) as on_progress:
        try:
            return opened.use(
                model,
                on_progress,
                conversion=conversion,
                confirm_download=lambda plan: confirm(plan, yes),
                precision=precision,
            )
        except KeyboardInterrupt:
            message = "wordreel: stopped. The previous model stays in use; the same command resumes."
            typer.echo(message, err=True)
            raise typer.Exit(130) from None


def describe(now: Progress) -> Shown:
    """Describe frames as `add` shows them, downloads by their size."""
    from wordreel.cli.manage.add import files_note
    from wordreel.ingest.add_report import AddProgress

    if isinstance(now, AddProgress):
        return Shown("Embedding frames", now.bytes_done, now.bytes_total, files_note(now))
    if now.stage.startswith("downloading"):
        return shown(now)._replace(note=size_of(now.total or 0))
    return shown(now)


def confirm(plan: InstallPlan, yes: bool) -> bool:
    """Say what will be downloaded; ask on a terminal unless `yes`."""
    typer.echo(f"{plan.name} is to be downloaded, {size_of(plan.download_bytes)}:", err=True)
    for name, size in plan.files:
        digest = f"  sha256 {printable(plan.sha256[name])}" if name in plan.sha256 else ""
        typer.echo(f"  {printable(name)}  {size_of(size)}{digest}", err=True)
    at = f" at commit {plan.revision}" if plan.revision else ""
    typer.echo(f"  from {printable(plan.source)}{at}; licence: {printable(plan.licence)}", err=True)
    if yes:
        return True
    if not sys.stdin.isatty():
        typer.echo("There is no terminal to ask on; agree with --yes.", err=True)
        return False
    return typer.confirm("Download it?", err=True)


def _print_models(opened: Library, every: bool, as_json: bool) -> None:
    rows = opened.models()
    lines = []
    for row in rows:
        if every or row.in_use or row.embedded:
            state = "in use" if row.in_use else ""
            name = printable(row.name) or "(a model that is gone)"
            embedded = f"{row.embedded}/{row.clips} clips embedded"
            lines.append(f"{padded(name, 24)} {row.fingerprint:<16}  {embedded}  {state}".rstrip())
    print_result(as_json, rows, lines)
