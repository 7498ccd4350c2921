"""All verbs together. The module of a verb is imported when the verb is run or its help is printed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

from wordreel import __version__
from wordreel.cli.plain_options import PlainCommand, PlainGroup

VERBS = {
    "add": "add:add",
    "import": "import_:import_",
    "search": "search:search",
    "where": "where:where",
    "like": "like:like",
    "caption": "caption:caption",
    "cut": "cut:cut",
    "list": "library:list_videos",
    "show": "library:show",
    "remove": "library:remove",
    "verify": "verify:verify",
    "backup": "backup:backup",
    "restore": "backup:restore",
    "tracks": "tracks:tracks",
    "reindex": "reindex:reindex",
    "push": "publish:push",
    "pull": "publish:pull",
    "index": "index:index",
    "doctor": "doctor:doctor",
    "experts": "experts:experts",
    "models": "models:models",
    "train": "train:train",
    "tune": "tune:tune",
    "convert": "convert:convert",
    "export": "export:export",
    "use": "use:use",
    "evaluate": "evaluate:evaluate",
    "compare": "compare:compare",
    "results": "results:results",
    "qbnorm": "qbnorm:qbnorm",
    "hubness": "hubness:hubness",
    "serve": "serve:serve",
    "demo": "demo:demo",
    "completion": "completion:completion",
    "weights": "weights:app",
    "bank": "bank:app",
    "tag": "tag:app",
    "saved": "saved:app",
    "people": "people:app",
}
"""In the order of the help: the module in `wordreel.cli`, and its function or its app of several verbs."""


class Commands(MutableMapping[str, Any]):
    """The command of each verb, made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, verb: str) -> Any:
        if verb not in self._made:
            self._made[verb] = _command(verb, VERBS[verb])
        return self._made[verb]

    def __setitem__(self, verb: str, command: Any) -> None:
        self._made[verb] = command

    def __delitem__(self, verb: str) -> None:
        del self._made[verb]

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class Verbs(PlainGroup):
    """The program: a group that imports what is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands()


app = typer.Typer(
    name="wordreel",
    cls=Verbs,
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


def _command(verb: str, where: str) -> Any:
    """The command of a verb, or the group of its verbs."""
    module, _, name = where.partition(":")
    target = getattr(import_module(f"wordreel.cli.{module}"), name)
    if isinstance(target, typer.Typer):
        target.info.cls = PlainGroup
        for inner in target.registered_commands:
            inner.cls = PlainCommand
        command = get_command(target)
        command.name = verb
        return command
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    alone.command(verb, cls=PlainCommand)(target)
    return get_command(alone)
