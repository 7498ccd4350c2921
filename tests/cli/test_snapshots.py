"""What each command prints, as one text file per behaviour in `snapshots/`.

After an intended change, `WORDREEL_UPDATE_SNAPSHOTS=1 pytest tests/cli/test_snapshots.py` writes the files
again; read the diff before you commit it. What differs between machines and runs is masked: folders,
fingerprints, scores, times and sizes.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from wordreel.cli import main

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("WORDREEL_UPDATE_SNAPSHOTS"))

# name → the words after `wordreel`; MEDIA and LIBRARY stand for folders
COMMANDS = {
    "help": "--help",
    "no_verb": "",
    "add_unchanged": "add MEDIA --experts clip,ocr,shots -L LIBRARY",
    "add_nothing_there": "add MEDIA/nowhere -L LIBRARY",
    "search": "search 'grand opening' -L LIBRARY",
    "search_all": "search 'grand opening' --all -L LIBRARY",
    "search_moments": "search 'grand opening' --moments --limit 1 -L LIBRARY",
    "search_no_words": "search -L LIBRARY",
    "search_no_pictures": "search 'grand opening' --preview -L LIBRARY",
    "search_compare": "search 'grand opening' --compare --norm dis -L LIBRARY",
    "search_unquoted": "search grand opening --limit 1 -L LIBRARY",
    "search_exclude_unquoted": "search grand opening -bakery -L LIBRARY",
    "search_nothing_passes": "search 'grand opening' --min-duration 999 -L LIBRARY",
    "search_no_such_folder": "search 'grand opening' --folder /nowhere -L LIBRARY",
    "search_no_such_expert": "search 'grand opening' --expert nobody -L LIBRARY",
    "search_too_sure": "search 'zzz qqq' --min-confidence 1 -L LIBRARY",
    "search_empty_query": "search '  ' -L LIBRARY",
    "search_no_library": "search 'a dog' -L MEDIA/nowhere",
    "search_unknown_norm": "search 'a dog' --norm wrong -L LIBRARY",
    "like": "search --like MEDIA/station.mp4 -L LIBRARY",
    "like_not_media": "search --like MEDIA/notes.txt -L LIBRARY",
    "list": "list -L LIBRARY",
    "list_failures": "list --failures -L LIBRARY",
    "show": "show MEDIA/station.mp4 -L LIBRARY",
    "show_unknown": "show MEDIA/other.mp4 -L LIBRARY",
    "remove": "remove MEDIA/station.mp4 -L LIBRARY",
    "remove_unknown": "remove MEDIA/nowhere.mp4 -L LIBRARY",
    "verify": "verify -L LIBRARY",
    "reindex": "reindex -L LIBRARY",
    "use": "use -L LIBRARY",
    "use_unknown": "use nothing -L LIBRARY",
    "bank_list": "bank list -L LIBRARY",
    "bank_show": "bank show everyday -L LIBRARY",
    "bank_unknown": "bank show nothing -L LIBRARY",
    "models": "models",
    "index": "index -L LIBRARY",
    "index_wrong_address": "index mysql://me:secret@host/x -L LIBRARY",
    "unknown_command": "serch",
    "unknown_option": "search a dog --limitt 3",
    "unknown_option_like_none": "search a dog --colour red",
    "unexpected_argument": "list MEDIA -L LIBRARY",
    "wrong_number": "search a dog --limit x",
    "number_out_of_range": "search a dog --min-confidence 2",
    "wrong_day": "search a dog --after yesterday",
    "wrong_choice": "search a dog --kind film",
}
COMMAND_HELP = (
    "add", "search", "caption", "import", "use", "models", "train", "evaluate", "qbnorm",
    "serve", "index", "watch",
)  # fmt: skip
MASKS = (
    (r"\b[0-9a-f]{16,64}\b", "HASH"),
    (r"(?<=\d\. {2})-?\d+\.\d{3}\b", "SCORE"),
    (r"[+−-]\d\.\d\d(?=: )", "SHARE"),
    (r" +\d+% sure(?!:)", "  N% sure"),
    (r"\b\d+ ?%", "N%"),
    (r"\d+(\.\d+)?× real time", "N× real time"),
    (r"\bin \d+(\.\d+)? (ms|s|min)\b", "in TIME"),
    (r"\b\d+(\.\d+)? ?(KB|MB|GB|KiB|MiB|GiB)\b", "SIZE"),
    (r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d)?)?", "DATE"),
    (r"(seen|ocr) SHARE: .*", "REASONS"),
    (r"\bbeta=[\d.]+", "beta=N"),
    (r"[ \t]+$", ""),
)


def masked(text: str, folders: dict[str, Path]) -> str:
    for name, folder in folders.items():
        text = text.replace(str(folder), name)
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


def words(command: str, folders: dict[str, Path]) -> list[str]:
    for name, folder in folders.items():
        command = re.sub(rf"\b{name}\b", str(folder), command)
    return shlex.split(command)


def compare(name: str, shown: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if UPDATE:
        path.write_text(shown, "utf-8")
    assert path.is_file(), f"no snapshot {path.name}; WORDREEL_UPDATE_SNAPSHOTS=1 writes it"
    assert shown == path.read_text("utf-8")


@pytest.fixture
def folders(shell, media):
    return {"MEDIA": media, "LIBRARY": shell.library}


@pytest.fixture
def run(shell, monkeypatch, capsys):
    """The program as `main` runs it: what it prints, and its exit code below."""

    def run(arguments: list[str]) -> str:
        monkeypatch.setattr(sys, "argv", ["wordreel", *arguments])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.setenv("TERM", "xterm")
        for name in ("KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL", "WORDREEL_PICTURES"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERMINAL_WIDTH", "100")
        monkeypatch.setenv("WORDREEL_LIBRARY", str(shell.library))
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = capsys.readouterr()
        parts = [
            printed.out,
            f"--- standard error\n{printed.err}" if printed.err else "",
            f"--- exit {code}\n",
        ]
        return "".join(parts)

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_command_prints_its_snapshot(name, run, folders):
    shown = run(words(COMMANDS[name], folders))
    compare(name, masked(shown, folders))


@pytest.mark.parametrize("command", COMMAND_HELP)
def test_help_prints_its_snapshot(command, run):
    shown = run([command, "--help"])
    assert "Example" in shown or "Commands:" in shown
    compare(f"help_{command}", shown)


def test_no_snapshot_is_left_behind():
    known = {*COMMANDS, *(f"help_{command}" for command in COMMAND_HELP)}
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == known


def test_module_runs_like_the_installed_program():
    program = [sys.executable, "-m", "wordreel", "--version"]
    shown = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"wordreel \d+\.\d+\.\d+\n", shown)
