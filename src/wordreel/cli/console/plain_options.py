"""Convert plain values of options without pydantic, whose import takes longer than a search.

typer builds a pydantic validator for each option of a command that it runs. Text, numbers and paths without
conditions do not need one; whatever is not plain, a number out of its range for example, still goes to typer.
What it refuses is worded by `usage_errors`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from wordreel.cli.console.help_examples import example_lines, split_examples
from wordreel.cli.console.usage_errors import expected, unknown_options_named

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{0,15})?", re.ASCII)
_PATH_CONDITIONS = ("exists", "writable", "resolve_path", "allow_dash", "path_type")


class PlainCommand(TyperCommand):
    """A command whose options are converted here first."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options, `--help` among them."""
        return convert_plainly(super().get_params(ctx))

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
        with unknown_options_named():
            rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            ctx.fail(f"unexpected {' '.join(rest)!r}; put a value of several words in quotes")
        return rest


class PlainGroup(TyperGroup):
    """A group of commands whose own options are converted here first."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All options, `--help` among them."""
        return convert_plainly(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse options; an error says what to write instead."""
        with unknown_options_named():
            return super().parse_args(ctx, args)


def convert_plainly(params: list[Any]) -> list[Any]:
    """The options, converted here first. Leaves those of a typer alone that has no such seam."""
    for param in params:
        if getattr(param, "_runtime_param", param) is None and hasattr(param, "type_descriptor"):
            param._runtime_param = _PlainOption(param.type_descriptor)
    return params


class _PlainOption:
    """Stands in for typer's converter of one option."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value in its type."""
        if value is None and param.nargs != -1:
            return () if param.multiple else None
        info, kind = self._descriptor.parameter_info, self._descriptor.annotation
        if info.parser is None and (plain := plain_value(value, kind, info)) is not None:
            return plain
        from typer._coercion import build_runtime_param

        try:
            return build_runtime_param(self._descriptor).coerce(value, param=param, ctx=ctx)
        except typer.BadParameter as error:
            if error.__cause__ is None or info.parser is not None or (wanted := expected(kind, info)) is None:
                raise
            given = value if isinstance(value, str) else " ".join(map(str, value))
            raise typer.BadParameter(f"{given!r} is not {wanted}", ctx=ctx, param=param) from None


def plain_value(value: Any, kind: Any, info: Any) -> Any:
    """The value as `kind`; None where only typer can tell."""
    if kind is str and isinstance(value, str):
        return value
    if kind == list[str] and isinstance(value, tuple):
        return list(value)
    if kind is Path and isinstance(value, str | Path):
        conditions = any(getattr(info, name) for name in _PATH_CONDITIONS)
        readable = os.access(value, os.R_OK) or not os.path.lexists(value)
        return Path(value) if info.file_okay and info.dir_okay and readable and not conditions else None
    if kind is bool and isinstance(value, bool):
        return value
    if kind in (int, float) and isinstance(value, str):
        whole = (_WHOLE_NUMBER if kind is int else _NUMBER).fullmatch(value)
        value = kind(value) if whole else None
    if kind in (int, float) and type(value) is kind and not info.clamp:
        low, high = info.min, info.max
        return value if (low is None or value >= low) and (high is None or value <= high) else None
    return None
