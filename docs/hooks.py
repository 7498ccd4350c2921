"""Build hook: writes the command-line reference from the commands' own help."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files
from typer.main import get_command

from wordreel.cli.app import app


def on_files(files: Files, config: Any) -> Files:
    files.append(File.generated(config, "cli.md", content=command_reference()))
    return files


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
