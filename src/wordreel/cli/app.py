"""All verbs together."""

from __future__ import annotations

from typing import Annotated

import typer

from wordreel import __version__
from wordreel.cli import (
    add,
    backup,
    bank,
    caption,
    compare,
    convert,
    cut,
    demo,
    doctor,
    evaluate,
    experts,
    export,
    hubness,
    import_,
    index,
    library,
    like,
    models,
    publish,
    qbnorm,
    reindex,
    results,
    search,
    serve,
    tracks,
    train,
    tune,
    use,
    verify,
    weights,
    where,
)

app = typer.Typer(
    name="wordreel",
    help=(
        "Find the moment in your videos with words.\n\n"
        'Start with: wordreel add ~/Videos, then: wordreel search "a man lifts a car"'
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # help is printed in a tenth of a second instead of a third
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"wordreel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


app.command("add")(add.add)
app.command("import")(import_.import_)
app.command("search")(search.search)
app.command("where")(where.where)
app.command("like")(like.like)
app.command("caption")(caption.caption)
app.command("cut")(cut.cut)
app.command("list")(library.list_videos)
app.command("show")(library.show)
app.command("remove")(library.remove)
app.command("verify")(verify.verify)
app.command("backup")(backup.backup)
app.command("restore")(backup.restore)
app.command("tracks")(tracks.tracks)
app.command("reindex")(reindex.reindex)
app.command("push")(publish.push)
app.command("pull")(publish.pull)
app.command("index")(index.index)
app.command("doctor")(doctor.doctor)
app.command("experts")(experts.experts)
app.command("models")(models.models)
app.command("train")(train.train)
app.command("tune")(tune.tune)
app.command("convert")(convert.convert)
app.command("export")(export.export)
app.command("use")(use.use)
app.add_typer(weights.app, name="weights")
app.add_typer(bank.app, name="bank")
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("results")(results.results)
app.command("qbnorm")(qbnorm.qbnorm)
app.command("hubness")(hubness.hubness)
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
