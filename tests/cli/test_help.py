"""The help of every verb, at the widths of terminals."""

import re

import pytest
from tests.test_docs import COMMANDS
from typer.testing import CliRunner

from wordreel.cli.app import app
from wordreel.cli.console.commands import split_examples

LEAVES = sorted(verbs for verbs, command in COMMANDS.items() if not hasattr(command, "commands"))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("verbs", LEAVES, ids=" ".join)
def test_every_example_is_a_command_of_its_own(verbs, width):
    shown = CliRunner().invoke(app, [*verbs, "--help"], terminal_width=width, max_content_width=width).output
    _, commands = split_examples(COMMANDS[verbs].help)
    assert commands, "every verb has an example"
    below = shown[shown.index("  Example") :].split("\n\n")[0]
    lines = re.sub(r" \\\n +", " ", below).splitlines()[1:]
    assert [line.strip() for line in lines] == commands
    assert max(map(len, shown.splitlines())) <= width


def test_a_long_example_is_broken_before_an_option(monkeypatch):
    shown = CliRunner().invoke(app, ["train", "features", "--help"], terminal_width=80).output
    assert "--seed 0 \\\n        --seed 1 --seed 2\n" in shown
