"""The process that runs one job: it receives the order, and sends progress and a report.

When the server is gone this process exits; the next server resumes the job.
"""

from __future__ import annotations

import os
from dataclasses import asdict

from wordreel.util.child_process import parent_link


def main() -> None:
    os.nice(5)  # searches come first
    link = parent_link()
    order = link.receive()
    from wordreel.errors import LibraryBusy, WordreelError
    from wordreel.library import Library
    from wordreel.serve.jobs.tasks import run_job

    try:
        library = Library(order["library"], create=False)
        report = run_job(
            library, order["kind"], order["request"], lambda progress: link.send({"progress": progress})
        )
        link.send({"report": report})
    except WordreelError as error:
        step = asdict(error.next_step) if error.next_step else None
        kind = "busy" if isinstance(error, LibraryBusy) else "error"
        link.send({kind: error.message, "next_step": step})


if __name__ == "__main__":
    main()
