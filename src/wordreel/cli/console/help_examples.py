"""The examples in the help of a verb: one command each, never run together."""

from __future__ import annotations

import re

EXAMPLE = re.compile(r"^(?:Example: +)?(wordreel .*)$")
HEADING = re.compile(r"^Examples?:")
WORD = re.compile(r'--?[a-z][\w-]*(?: (?!-)(?:"[^"]*"|\S+))?|(?:"[^"]*"|\S)+', re.IGNORECASE)
"""A word of a command; an option with its value."""
INDENT, DEEPER = "  ", "      "


def split_examples(text: str) -> tuple[str, list[str]]:
    """Split the docstring of a verb into its prose and the commands below "Example:" or "Examples:".

    >>> split_examples("List files.\\n\\nExample: wordreel list\\nExample: wordreel list --failures")
    ('List files.', ['wordreel list', 'wordreel list --failures'])
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if HEADING.match(line)), len(lines))
    found = [EXAMPLE.match(line.strip()) for line in lines[start:]]
    return "\n".join(lines[:start]).strip(), [match[1] for match in found if match]


def example_lines(commands: list[str], width: int) -> list[str]:
    """Lay commands out below a heading; one that is longer than `width` goes on in the next line.

    >>> print("\\n".join(example_lines(['wordreel search "a red car" --limit 3'], 34)))
    Example:
      wordreel search "a red car" \\
          --limit 3
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
