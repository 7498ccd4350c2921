"""A folder full of hostile and broken files: each is refused with a reason, the good ones are added."""

import json
import resource
import subprocess
import sys
import time

from tests.hostile import make_hostile, make_odd_but_fine

from wordreel.library import Library

PROGRAM = """
import json, sys
from wordreel.library import Library
library = Library(sys.argv[1])
report = library.add(*json.load(sys.stdin), experts=["clip", "shots"])
# Its own peak: ru_maxrss would begin with that of the process that started it.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"added": report.added, "failed": report.failed, "ignored": report.ignored, "peak": peak}))
"""


def test_the_rest_is_added(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    hostile = make_hostile(folder)
    assert len(hostile) >= 30
    (tmp_path / "fine").mkdir()
    fine = make_odd_but_fine(tmp_path / "fine")
    began = time.monotonic()
    ran = subprocess.run(
        # Named one by one as well: a file that was named must be answered for, whatever its ending.
        [sys.executable, "-c", PROGRAM, str(tmp_path / "library")],
        input=json.dumps([*map(str, hostile.values()), *map(str, fine.values())]).encode(),
        capture_output=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    report = json.loads(ran.stdout)
    reasons = dict(report["failed"])
    assert len(reasons) + report["ignored"] >= len(hostile) - 2  # two names of one missing file
    assert all(reason.strip() and "\n" not in reason for reason in reasons.values())
    assert report["peak"] < 2 * 2**20  # KiB
    assert time.monotonic() - began < 240
    library = Library(tmp_path / "library", create=False)
    kept = {file.path for file in library.store.files()}
    assert kept >= {str(path) for path in fine.values()}
    assert not kept & {str(path) for path in hostile.values()}
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 4 * 2**20
