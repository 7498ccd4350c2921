"""All verbs together. The module of a verb is imported when the verb is run or its help is printed."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from wordreel import __version__
from wordreel.cli.console.commands import Command, Group
from wordreel.cli.console.common import default_library, open_library

VERBS = {
    "add": "manage.add:add",
    "watch": "manage.watch:watch",
    "search": "find.search:search",
    "where": "find.one_video:where",
    "caption": "find.one_video:caption",
    "cut": "find.one_video:cut",
    "list": "manage.videos:list_videos",
    "show": "manage.videos:show",
    "remove": "manage.videos:remove",
    "verify": "manage.upkeep:verify",
    "backup": "manage.upkeep:backup",
    "restore": "manage.upkeep:restore",
    "tracks": "manage.storage:tracks",
    "reindex": "manage.storage:reindex",
    "push": "manage.storage:push",
    "pull": "manage.storage:pull",
    "index": "manage.storage:index",
    "doctor": "setup.overview:doctor",
    "experts": "setup.overview:experts",
    "models": "setup.overview:models",
    "use": "setup.use:use",
    "serve": "setup.serve:serve",
    "demo": "setup.demo:demo",
    "weights": "setup.weights:app",
    "bank": "manage.bank:app",
    "tag": "manage.tag:app",
    "saved": "find.saved:app",
    "people": "manage.people:app",
    "import": "lab.import_:import_",
    "train": "lab.train:app",
    "convert": "lab.convert:convert",
    "export": "lab.convert:export",
    "evaluate": "lab.evaluate:app",
    "compare": "lab.compare:compare",
    "results": "lab.compare:results",
    "qbnorm": "lab.qbnorm:qbnorm",
    "hubness": "lab.hubness:hubness",
}
"""In the order of the help: the module in `wordreel.cli`, and its function or its app of several verbs."""
LABORATORY = "Laboratory (datasets, training, evaluation)"


class Commands(UserDict[str, Any]):
    """The command of each verb, made when it is looked up."""

    def __getitem__(self, verb: str) -> Any:
        """Return the command of a verb; the first time, import its module."""
        if isinstance(self.data[verb], str):
            self.data[verb] = _command(verb, self.data[verb])
        return self.data[verb]


class Verbs(Group):
    """The program: a group that imports what is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs, those of the laboratory in a group of their own."""
        limit = formatter.width - 6 - max(map(len, VERBS))
        for title, in_laboratory in (("Commands", False), (LABORATORY, True)):
            verbs = [verb for verb, where in VERBS.items() if where.startswith("lab.") == in_laboratory]
            with formatter.section(title):
                formatter.write_dl([(v, self.commands[v].get_short_help_str(limit)) for v in verbs])


app = typer.Typer(
    name="wordreel",
    cls=Verbs,
    help=(
        "Find the moment in your videos with words.\n\n"
        'Start with: wordreel add ~/Videos, then: wordreel search "a man lifts a car"'
    ),
    invoke_without_command=True,
    rich_markup_mode=None,  # help is printed in a tenth of a second instead of a third
    pretty_exceptions_enable=False,
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"wordreel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        from wordreel.cli.setup.next_steps import print_next_steps

        print_next_steps(default_library())


def _command(verb: str, where: str) -> Any:
    """Return the command of a verb, or the group of its verbs."""
    module, _, name = where.partition(":")
    target = getattr(import_module(f"wordreel.cli.{module}"), name)
    if isinstance(target, typer.Typer):
        target.info.cls = Group
        for inner in target.registered_commands:
            inner.cls = Command
        command = get_command(target)
        command.name = verb
        return command
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(verb, cls=Command)(open_library(target))
    return get_command(alone)
