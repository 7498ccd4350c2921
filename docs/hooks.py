"""Build hooks: the command-line reference from the commands' own help, and the modules behind a registry."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from wordreel.cli.app import app


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "cli.md", content=command_reference()))
    return files


API = re.compile(r"^<!-- api: ([\w.]+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace `<!-- api: NAME -->` by the documentation of the modules behind a package or a registry."""
    return API.sub(lambda match: "\n".join(f"::: {name}" for name in documented_modules(match[1])), markdown)


def documented_modules(name: str) -> list[str]:
    """Return the modules that define what a package exports, or the classes of a registry, once each."""
    try:
        package = import_module(name)
        values = [getattr(package, exported) for exported in package.__all__]
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        values = list(getattr(import_module(module), attribute).values())
    return list(dict.fromkeys(value.__module__ for value in values))


def command_reference() -> str:
    """Every command with its help, as Markdown."""
    root: Any = get_command(app)
    parts = ["# Command line", "Every command takes `--help`. `python -m wordreel` is the same program."]
    for name, command in root.commands.items():
        parts += _sections(f"wordreel {name}", command)
    return "\n\n".join(parts) + "\n"


def _sections(path: str, command: Any) -> list[str]:
    if hasattr(command, "commands"):
        inner = [part for name, sub in command.commands.items() for part in _sections(f"{path} {name}", sub)]
        return [f"## {path}", command.help or "", *inner]
    with command.make_context(path, [], resilient_parsing=True) as context:
        return [f"## {path}", f"```text\n{command.get_help(context)}\n```"]
