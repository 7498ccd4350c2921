"""Commands whose help lists examples line by line, and whose errors say what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

UsageError: Any = typer.BadParameter.__base__  # which typer does not export
SIMILAR = 0.75
EXAMPLE = re.compile(r"^(?:Example: +)?(wordreel .*)$")
HEADING = re.compile(r"^Examples?:")
WORD = re.compile(r'--?[a-z][\w-]*(?: (?!-)(?:"[^"]*"|\S+))?|(?:"[^"]*"|\S)+', re.IGNORECASE)
"""A word of a command; an option with its value."""
INDENT, DEEPER = "  ", "      "


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


def split_examples(text: str) -> tuple[str, list[str]]:
    r"""Split the docstring of a verb into its prose and the commands below "Example:" or "Examples:".

    >>> split_examples("List files.\n\nExample: wordreel list\nExample: wordreel list --failures")
    ('List files.', ['wordreel list', 'wordreel list --failures'])
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if HEADING.match(line)), len(lines))
    found = [EXAMPLE.match(line.strip()) for line in lines[start:]]
    return "\n".join(lines[:start]).strip(), [match[1] for match in found if match]


def example_lines(commands: list[str], width: int) -> list[str]:
    r"""Lay commands out below a heading; one that is longer than `width` goes on in the next line.

    >>> example_lines(['wordreel search "a red car" --limit 3'], 34)
    ['Example:', '  wordreel search "a red car" \\', '      --limit 3']
    """
    lines = ["Examples:" if len(commands) > 1 else "Example:"]
    for command in commands:
        line = INDENT
        for word in WORD.findall(command):
            if len(line) + len(word) > width - 2 and line.strip():
                lines.append(f"{line}\\")
                line = DEEPER
            line += f"{word} "
        lines.append(line.rstrip())
    return lines


def expected(kind: Any, info: Any) -> str | None:
    """Describe the values that an option takes; None of files, whose own errors say what is wrong.

    >>> expected(int, typer.Option(min=1)), expected(Literal["csv", "edl"], typer.Option())
    ('a whole number of at least 1', 'one of csv, edl')
    """
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) in (list, tuple):
        return expected(get_args(kind)[0], info)
    if kind is datetime:
        return "a day like 2024-05-31 or a time like 2024-05-31T14:30"
    if kind not in (int, float):
        return None
    number = "a whole number" if kind is int else "a number"
    low, high = info.min, info.max
    if low is not None and high is not None:
        return f"{number} from {low:g} to {high:g}"
    if low is not None:
        return f"{number} of at least {low:g}"
    return number if high is None else f"{number} of at most {high:g}"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what an option takes; suggest the option that an unknown one resembles."""
    try:
        yield
    except UsageError as error:
        if (name := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
            similar = get_close_matches(name, error.possibilities or (), 1, SIMILAR)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            if error.ctx.info_name == "search" and not name.startswith("--"):
                hint = '; to exclude a word, put the query in quotes: `wordreel search "a street -car"`'
            error.message = f"there is no option {name}{hint}"
            error.possibilities = None
        elif message := _wrong_value(error):
            error.message = message
        raise


def _wrong_value(error: Any) -> str | None:
    """Say what a validation error of pydantic means; None of any other error."""
    descriptor = getattr(getattr(error, "param", None), "type_descriptor", None)
    if descriptor is None or not hasattr(error.__cause__, "errors"):
        return None
    wanted = expected(descriptor.annotation, descriptor.parameter_info)
    given = error.__cause__.errors()[0]["input"]
    return None if wanted is None else f"{given!r} is not {wanted}"
