"""The limits a decoding worker sets on itself before it reads its first file."""

from __future__ import annotations

import os
import resource
import threading
import time


def confine(memory_bytes: int) -> None:
    """Bound this process: memory, no core dump, no file writing, one more descriptor, never an orphan.

    The bound on descriptors is the fence's main wall: it allows exactly one, which the file to
    decode takes. While decoding, nothing else can be opened: no second file, no socket, no device.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _lower(resource.RLIMIT_AS, memory_bytes)
    free = os.dup(0)
    os.close(free)
    _lower(resource.RLIMIT_NOFILE, free + 1)
    die_with_parent()


def die_with_parent() -> None:
    """Watch the process that started this one, and leave when it is gone."""
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(which, (limit, limit))
    except (OSError, ValueError):
        # Some systems refuse limits on address space; the parent's clock still holds.
        return


def _die_with(parent: int) -> None:
    """Leave when the parent is gone, even from the middle of a decode that would never end.

    The kernel's own parent-death signal follows the *thread* that started the worker, and here a worker
    outlives that thread, so the parent is looked for once a second instead.
    """
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
