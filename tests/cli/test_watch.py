"""`wordreel watch`, and `wordreel` without a verb."""

import json
import os
import signal
import subprocess
import sys
from typing import get_args

from tests.cli.invoke import shell as run_verb

from wordreel.cli.manage.watch import SENTENCES, sentence
from wordreel.ingest.watch import EventKind, WatchEvent


def watch(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "wordreel", "watch", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "WORDREEL_THREADS": "1"},
    )


def test_ctrl_c_stops_it(shell, media):
    running = watch(media, media / "later", "--json", "-L", shell.library)
    events = [json.loads(running.stdout.readline()) for _ in range(2)]
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert [event["kind"] for event in events] == ["absent", "idle"]
    assert events[0]["path"] == str(media / "later")
    assert running.returncode == 130
    assert "Nothing is lost" in errors


def test_once_adds_what_is_there(tmp_path, media):
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "picture.png").write_bytes(picture())
    (folder / "broken.mp4").write_bytes(b"\x00" * 100)
    running = watch(folder, "--once", "-L", tmp_path / "library")
    printed, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    lines = printed.splitlines()
    assert f"added {folder}/picture.png" in lines
    assert f"thorough pass done: {folder}/picture.png" in lines
    assert any(line.startswith(f"could not be added: {folder}/broken.mp4: ") for line in lines)
    assert lines[-1] == "up to date"


def picture():
    import cv2
    import numpy as np

    return cv2.imencode(".png", np.full((48, 64, 3), 90, np.uint8))[1].tobytes()


def test_every_event_has_a_sentence():
    assert set(SENTENCES) == set(get_args(EventKind))
    assert sentence(WatchEvent("failed", "/a\nb", "cut off")) == "could not be added: /a\\nb: cut off"


def test_without_a_verb_an_empty_library_leads_to_the_first_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_LIBRARY", str(tmp_path / "library"))
    printed = run_verb().stdout
    assert "`wordreel add FOLDER`" in printed
    assert "`wordreel search" not in printed
    assert not (tmp_path / "library").exists()
