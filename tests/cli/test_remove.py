"""`remove` asks before it removes many files, and says what it leaves."""

import os
import pty
import subprocess
import sys

import pytest

from wordreel.cli.manage.videos import ASKS_ABOVE


@pytest.fixture
def many(shell, tmp_path):
    import cv2
    import numpy as np

    (tmp_path / "many").mkdir()
    for number in range(ASKS_ABOVE + 1):
        cv2.imwrite(str(tmp_path / "many" / f"{number}.png"), np.full((20, 30, 3), 9 * number, np.uint8))
    shell("add", tmp_path / "many", "--experts", "shots")
    return tmp_path / "many"


def test_many_files_are_removed_only_where_it_was_agreed_to(shell, many):
    before = shell("list")
    dry = shell("remove", many, "--dry-run")
    assert dry.splitlines()[0] == f"would remove {many / '0.png'}"
    assert dry.splitlines()[-1] == f"{ASKS_ABOVE + 1} files would be removed."
    shell("remove", many, code=1)
    assert shell("list") == before
    assert f"{ASKS_ABOVE + 1} files removed." in shell("remove", many, "--yes")


@pytest.mark.parametrize(("answer", "removed"), [(b"n\n", False), (b"y\n", True)])
def test_a_terminal_is_asked(shell, many, answer, removed):
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "wordreel", "remove", str(many), "-L", str(shell.library)]
    os.write(main, answer)
    done = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=False)
    assert f"Remove {ASKS_ABOVE + 1} files from the library?" in done.stderr
    assert (done.returncode == 0) is removed
    assert (str(many) not in shell("list")) is removed


def test_deleting_tags_is_asked_of_a_single_file_too(shell, many):
    picture = many / "0.png"
    shell("tag", "add", picture, "beach")
    shell("remove", picture, "--forget", code=1)
    assert "1 tag" in shell("tag", "list")
    shell("remove", picture, "--forget", "--yes")
    shell("add", many, "--experts", "shots")
    assert "0 tags" in shell("tag", "list")


def test_a_missing_folder_stays_and_is_said(shell, many):
    many.rename(many.with_name("moved"))
    said = shell("remove", "--missing")
    assert said.splitlines() == [
        "0 files removed.",
        f"{many} is not there now; {ASKS_ABOVE + 1} files in it stayed.",
    ]
    assert "→ plug in the disk, or add the folder where it is now: `wordreel add FOLDER`" in shell("verify")
