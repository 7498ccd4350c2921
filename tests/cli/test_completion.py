"""Completion is typer's own: verbs, their options, and the verbs of groups."""

import os
import subprocess
import sys

import pytest

from wordreel.cli.app import VERBS


def completed(typed):
    """What bash offers after these words."""
    words = typed.split(" ")
    asked = {"_WORDREEL_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "from wordreel.cli import main; main()"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **asked})
    return set(ran.stdout.split())


def test_verbs_options_and_groups_are_completed():
    assert completed("wordreel ") >= set(VERBS)
    assert completed("wordreel sea") == {"search"}
    assert completed("wordreel search --mom") == {"--moments"}
    assert completed("wordreel bank ") >= {"build", "check", "list"}
    assert completed("wordreel bank build --lo") == {"--log"}


@pytest.mark.parametrize("verb", ["bank", "saved", "weights", "tag", "people"])
def test_groups_have_no_completion_of_their_own(verb):
    command = [sys.executable, "-c", "from wordreel.cli import main; main()", verb, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Usage" in shown
    assert "completion" not in shown
