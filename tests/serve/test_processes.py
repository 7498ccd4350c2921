"""A server of several processes: each answers alike, and they share logins, pauses and counters."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.serve.conftest import Site, opened, wait

from wordreel.serve.processes import free_port


def children(process):
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def serving(process):
    """The processes that serve, of a server's children."""
    return {c for c in children(process) if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()}


def is_up(site):
    try:
        return site.get("/healthz").status == 200
    except OSError:
        return False


@pytest.fixture
def server(library):
    port = free_port("127.0.0.1")
    command = [sys.executable, "-m", "tests.serve.colour_process", str(library), str(port)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
        site = Site(port, None)
        wait(lambda: is_up(site))
        try:
            yield site, process
        finally:
            process.terminate()
            process.wait(60)


def test_every_process_answers_as_the_library_does(server, library):
    site, process = server
    expected = [hit.content for hit in opened(library).search("red")]
    for _ in range(12):  # a connection each: the processes take turns
        assert [hit["content"] for hit in site.get("/api/search?text=red").json["hits"]] == expected
    counted = b'wordreel_requests_total{method="GET",route="/api/search",status="200"} 12.0'
    assert counted in site.get("/metrics").body, "each process counts for itself"
    assert site.ask("PUT", "/api/jobs", {"paused": True}).json["paused"]
    assert all(site.get("/api/jobs").json["paused"] for _ in range(6))
    assert len(serving(process.pid)) == 2


def test_a_killed_process_is_replaced(server):
    site, process = server
    wait(lambda: len(serving(process.pid)) == 2)
    first = serving(process.pid).pop()
    os.kill(first, signal.SIGKILL)
    wait(lambda: len(serving(process.pid) - {first}) == 2)
    wait(lambda: is_up(site))
    assert json.loads(site.get("/api/search?text=red").body)["hits"]


def test_all_processes_go_with_the_first(server):
    site, process = server
    wait(lambda: len(serving(process.pid)) == 2)
    left = serving(process.pid)
    process.kill()
    process.wait(60)
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in left):
        assert time.monotonic() < deadline, "processes without a parent go on serving"
        time.sleep(0.1)
    assert not is_up(site)


def test_a_process_leaves_whose_parent_was_gone_before_it_looked():
    program = (
        "import time; from wordreel.media.sandbox import die_with_parent; die_with_parent({}); time.sleep(30)"
    )
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = subprocess.run([sys.executable, "-c", program.format(int(gone.stdout))], timeout=25, check=False)
    assert left.returncode == 1
