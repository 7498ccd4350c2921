"""The process that does one job: a line on standard input says which, lines on standard output how it goes.

When standard input ends, the server is gone, and so is this process: adding goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict
from typing import Any


def main() -> None:
    os.nice(5)  # whoever searches meanwhile comes first
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_until_the_server_goes, daemon=True).start()
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not be taken for an answer

    def say(what: dict[str, Any]) -> None:
        os.write(out, json.dumps(what).encode() + b"\n")

    from wordreel.api import Library
    from wordreel.errors import LibraryBusy, WordreelError
    from wordreel.serve.jobs.tasks import do

    try:
        library = Library(order["library"], create=False)
        report = do(library, order["kind"], order["request"], lambda progress: say({"progress": progress}))
        say({"report": report})
    except WordreelError as error:
        step = asdict(error.next_step) if error.next_step else None
        kind = "busy" if isinstance(error, LibraryBusy) else "error"
        say({kind: error.message, "next_step": step})


def _until_the_server_goes() -> None:
    while os.read(0, 4096):
        pass
    os._exit(3)


if __name__ == "__main__":
    main()
