"""The process that runs one job: the order is a line on standard input, progress is lines on standard output.

When standard input ends, the server is gone and this process exits; the next server resumes the job.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict
from typing import Any


def main() -> None:
    os.nice(5)  # searches come first
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_exit_with_server, daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not be read as a message

    def send(message: dict[str, Any]) -> None:
        os.write(out, json.dumps(message).encode() + b"\n")

    from wordreel.errors import LibraryBusy, WordreelError
    from wordreel.library import Library
    from wordreel.serve.jobs.tasks import run_job

    try:
        library = Library(order["library"], create=False)
        report = run_job(
            library, order["kind"], order["request"], lambda progress: send({"progress": progress})
        )
        send({"report": report})
    except WordreelError as error:
        step = asdict(error.next_step) if error.next_step else None
        kind = "busy" if isinstance(error, LibraryBusy) else "error"
        send({kind: error.message, "next_step": step})


def _exit_with_server() -> None:
    while os.read(0, 4096):
        pass
    os._exit(3)


if __name__ == "__main__":
    main()
