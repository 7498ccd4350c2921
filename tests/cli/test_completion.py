"""Completion scripts: bash runs its own; zsh and fish check theirs where they are installed."""

import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from wordreel.cli.app import VERBS, app
from wordreel.cli.setup.completion import all_verbs, fish


def script(shell):
    return CliRunner().invoke(app, ["completion", shell]).stdout


def completed(typed):
    """What bash offers after these words."""
    words = typed.split(" ")
    array = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _wordreel; printf '%s\\n' ${{COMPREPLY[@]}}"
    program = f"{script('bash')}\n{call}"
    ran = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_bash_completes_verbs_options_and_groups():
    assert completed("wordreel ") >= set(VERBS)
    assert completed("wordreel sea") == {"search"}
    assert completed("wordreel search --mom") == {"--moments"}
    assert completed("wordreel bank ") >= {"build", "check", "list", "--help"}
    assert completed("wordreel bank build --lo") == {"--log"}
    assert completed("wordreel search dog --lim") == {"--limit"}


def test_bash_completes_files_where_nothing_else_fits(tmp_path, monkeypatch):
    (tmp_path / "film.mp4").touch()
    monkeypatch.chdir(tmp_path)
    assert completed("wordreel add fi") == {"film.mp4"}


def test_every_option_is_in_every_script():
    zsh_script, fish_script = script("zsh"), script("fish")
    for verb in all_verbs():
        for option in verb.options:
            assert f"'{option}:" in zsh_script
            assert f" -l {option[2:]} " in fish_script
    for verb in VERBS:
        assert f"'{verb}:" in zsh_script
        assert f" -a {verb} " in fish_script


def test_quotes_in_help_do_not_end_the_quotes():
    for line in fish(all_verbs()).splitlines()[1:]:
        assert line.count("'") % 2 == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_reads_its_script(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script(shell), "utf-8")
    assert subprocess.run([shell, "-n", str(tmp_path / "script")], check=False).returncode == 0


@pytest.mark.parametrize("verb", ["bank", "saved", "weights", "tag", "people"])
def test_groups_have_no_completion_of_their_own(verb):
    command = [sys.executable, "-c", "from wordreel.cli import main; main()", verb, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Usage" in shown
    assert "completion" not in shown
