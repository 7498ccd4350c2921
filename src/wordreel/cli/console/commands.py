"""Commands whose help lists examples line by line, and whose errors say what to write instead."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from wordreel.cli.console.help_examples import example_lines, split_examples
from wordreel.cli.console.usage_errors import plain_errors


class Command(TyperCommand):
    """A verb."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the verb does, and each of its examples on a line of its own."""
        prose, commands = split_examples(self.help or "")
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(prose)
            if commands:
                formatter.write_paragraph()
                indent = formatter.current_indent
                for line in example_lines(commands, formatter.width - indent):
                    formatter.write(f"{'':{indent}}{line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options and arguments; an error says what to write instead."""
        ctx.allow_extra_args = True
        with plain_errors():
            rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(f"unexpected {' '.join(rest)!r}; put a value of several words in quotes")
        return rest


class Group(TyperGroup):
    """A verb with verbs of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options; an error says what to write instead."""
        with plain_errors():
            return super().parse_args(ctx, args)
