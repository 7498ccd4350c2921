"""A server that is used for long holds no more than before, and stops when it is told to.

`python benchmarks/soak.py` does the same for minutes, with many clients.
"""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.example_library import build
from tests.media_files import video
from tests.serve.conftest import MARK, running

from wordreel.catalogue.store import LibraryStore
from wordreel.maintain.verify import verify

ROOT = Path(__file__).parents[2]


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def files_in(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def until(done, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listens(connection):
    try:
        connection.connect()
    except ConnectionRefusedError:  # the address is printed before the server listens there
        return False
    return True


def one_round(site, media, number):
    """Add a film, find it, play it, look at it, and remove it again."""
    path = video(media / f"new{number}.mp4", 3.0, 5, seed=100 + number)
    job = site.ask("POST", "/api/folders", {"path": str(path)}, MARK).json["job"]
    assert site.ended(job)["state"] == "done"
    items = site.get("/api/videos?limit=50").json["items"]
    (content,) = [item["content"] for item in items if item["name"] == path.name]
    assert site.get(f"/api/search?text=red+{number}").status == 200
    part = site.ask("GET", f"/media/{content}", headers={"Range": "bytes=100-299"})
    assert (part.status, part.body) == (206, path.read_bytes()[100:300])
    assert site.get(f"/api/thumb/{content}?t=1").status == 200
    assert site.ask("DELETE", f"/api/videos/{content}", headers=MARK).status == 200
    assert site.get(f"/media/{content}").status == 404
    path.unlink()


def test_rounds_of_use_leave_nothing_behind(library, ready, tmp_path):
    media = tmp_path / "media"
    shutil.copytree(ready[1], media)
    with running(library, roots=(media,)) as site:
        for number in range(3):
            one_round(site, media, number)
        before, files = open_files(), files_in(library)
        for number in range(3, 8):
            one_round(site, media, number)
        until(lambda: open_files() <= before + 6)  # a snapshot maps as many
        thumbs = {name for name in files_in(library) - files if "thumbs" in name}
        assert len(thumbs) <= 5  # a bounded cache
        grown = {name for name in files_in(library) - files - thumbs if not name.startswith("cache/")}
        assert grown == set()
        assert site.get("/api/videos").json["total"] == 4


def test_a_server_that_is_told_to_stop_exits_normally(tmp_path):
    build(tmp_path / "films", tmp_path / "library")
    command = [sys.executable, ROOT / "tests/servers/serve_colours.py", "serve", "-L", tmp_path / "library"]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths}
    ) as process:
        try:
            line = process.stdout.readline()
            port = int(line.partition("://127.0.0.1:")[2].partition("/")[0])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            until(lambda: listens(connection))
            connection.request("GET", "/api/search?text=red")
            assert connection.getresponse().status == 200  # and the connection stays open
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0
            connection.close()
        finally:
            process.kill()
    with LibraryStore.open(tmp_path / "library") as store:
        assert [problem for problem in verify(store) if not problem.note] == []
