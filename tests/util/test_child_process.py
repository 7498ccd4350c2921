"""Worker processes are asked, cancelled, and end with the process that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wordreel.util.child_process import ChildProcess, MessageLink, ProcessGone, parent_link

ECHO = "tests.util.test_child_process"
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


def echo():
    """What a child of these tests does: three events for each message, or sleep."""
    link = parent_link()
    while True:
        message = link.receive()
        if message == "stay":
            time.sleep(600)
        for number in range(3):
            link.send({"event": number, "of": message})


def started(*arguments):
    return ChildProcess(ECHO, *arguments, environment=ENVIRONMENT)


def gone(pid):
    """Whether a process has ended, or waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def wait_until_gone(pid, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not gone(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_call_and_its_events():
    child = started()
    try:
        for message in ("a", {"b": "ü" * 200_000}):
            child.send(message)
            assert [child.receive(60) for _ in range(3)] == [{"event": n, "of": message} for n in range(3)]
        assert child.is_idle()
    finally:
        child.close()
    assert gone(child.pid)


def test_a_deadline_and_a_cancellation():
    child = started()
    child.send("stay")
    with pytest.raises(TimeoutError):
        child.receive(0.2)
    assert child.exit_status(0.1) is None
    child.cancel(30.0)
    assert child.exit_status(1.0) == -signal.SIGTERM
    with pytest.raises(ProcessGone):
        child.receive(5)
    with pytest.raises(ProcessGone):
        child.send("more")
    child.close()


def test_what_was_sent_before_the_end_is_received():
    child = started()
    child.send("a")
    assert child.receive(60) == {"event": 0, "of": "a"}
    child.send("stay")
    time.sleep(0.5)
    child.kill()
    assert [child.receive(5)["event"] for _ in range(2)] == [1, 2]
    with pytest.raises(ProcessGone):
        child.receive(5)
    child.close()


def test_a_busy_child_ends_with_a_killed_parent():
    program = (
        "import time\n"
        f"from {ECHO} import started\n"
        "child = started()\nchild.send('stay')\nprint(child.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as parent:
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    wait_until_gone(pid)


def test_bytes_that_are_no_message_end_the_link():
    import socket

    ours, theirs = socket.socketpair()
    theirs.sendall(b"\xff" * 100)
    with pytest.raises(ProcessGone):
        MessageLink(ours).receive(5)
    ours.close()
    theirs.close()


if __name__ == "__main__":
    echo()
