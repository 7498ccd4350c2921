"""The limits a decoding worker sets on itself before it reads its first file, and Linux's Landlock."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR


def confine(memory_bytes: int) -> None:
    """Bound this process: memory, no core dump, no file writing, one more descriptor, never an orphan.

    The bound on descriptors is the fence's main wall: it allows exactly one, which the file to
    decode takes. While decoding, nothing else can be opened: no second file, no socket, no device.
    """
    _forbid_writing()
    _lower(resource.RLIMIT_AS, memory_bytes)
    free = os.dup(0)
    os.close(free)
    _lower(resource.RLIMIT_NOFILE, free + 1)
    die_with_parent()


def confine_beside_device(
    memory_bytes: int, descriptors: int, nodes: Sequence[str], readable: Sequence[str]
) -> None:
    """Bound a process in which a driver has been loaded, and leave it what decoding on the device takes.

    Drivers reserve hundreds of gigabytes of addresses that they never use, so written memory is bounded
    (`RLIMIT_DATA`) in place of addresses, beyond what the driver took. They open their device anew for
    each decoder: that many descriptors stay free besides the file's, and where the kernel has Landlock they
    can open the device's nodes only, and read what `readable` names.
    """
    taken = _written_bytes()
    _forbid_writing()
    _lower(resource.RLIMIT_DATA, taken + memory_bytes)
    _lower(resource.RLIMIT_NOFILE, descriptor_limit(open_descriptors(), 1 + descriptors))
    die_with_parent()
    allow_only(nodes, readable)


def keep_libraries() -> None:
    """Keep all libraries that are loaded now, where they can be opened again only outside.

    FFmpeg and VA-API unload a driver with its last user and load it for the next.
    """
    if sys.platform != "linux":
        return
    mapped = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    for path in {fields[5] for fields in mapped if len(fields) == 6 and ".so" in fields[5]}:
        with suppress(OSError):  # not a library
            ctypes.CDLL(path, os.RTLD_NOW | os.RTLD_NOLOAD | os.RTLD_NODELETE)


def open_descriptors() -> set[int]:
    """Return the numbers of all open descriptors."""
    listed = {int(entry.name) for entry in Path("/dev/fd").iterdir()}
    return {number for number in listed if _is_open(number)}  # less that of the listing itself


def descriptor_limit(taken: set[int], more: int) -> int:
    """Return the smallest `RLIMIT_NOFILE` that lets a process open `more` descriptors besides those `taken`.

    >>> descriptor_limit({0, 1, 2, 5}, 1), descriptor_limit({0, 1, 2, 5}, 3)
    (4, 7)
    """
    number = -1
    while more:
        number += 1
        more -= number not in taken
    return number + 1


def die_with_parent(parent: int | None = None) -> None:
    """Watch the process that started this one, and leave when it is gone.

    A process that takes long to start names its parent, which may be gone before this is called.
    """
    threading.Thread(target=_die_with, args=(parent or os.getppid(),), daemon=True).start()


def _forbid_writing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _written_bytes() -> int:
    """Return what counts against `RLIMIT_DATA` now."""
    if sys.platform != "linux":
        return 0
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmData:")[1].split()[0])


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


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all processors
_VERSION = 1  # flag of the first: which version of Landlock is there?
_PATH_BENEATH = 1  # kind of rule
_NO_NEW_PRIVILEGES = 38  # prctl

_WRITE, _READ, _READ_FOLDER, _DEVICE_CONTROL = 1 << 1, 1 << 2, 1 << 3, 1 << 15
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""From which version on how many kinds of access to files can be denied."""
_NETWORK, _SCOPES = 3, 3
"""Listening and connecting (version 4); sockets and signals to processes outside (version 6)."""


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("descriptor", ctypes.c_int32)]


def landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 where there is none."""
    if os.uname().sysname != "Linux":
        return 0
    version: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION)
    return max(0, version)


def allow_only(devices: Sequence[str], readable: Sequence[str]) -> bool:
    """Deny this thread and those it starts every file, program and connection but these.

    Descriptors that are open already stay usable. Returns False where the kernel has no Landlock.

    Args:
        devices: Device nodes that may be opened for reading, writing and control.
        readable: Files, or folders with all they hold, that may be read.
    """
    version = landlock_version()
    if not version:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    handled = _ALL_RIGHTS[max(known for known in _ALL_RIGHTS if known <= version)]
    ruleset = _Ruleset(handled, _NETWORK if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), 0)
    if rules < 0:
        return False
    try:
        for path in devices:
            _allow(libc, rules, path, (_READ | _WRITE | _DEVICE_CONTROL) & handled)
        for path in readable:
            _allow(libc, rules, path, _READ)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    try:
        if S_ISDIR(os.fstat(opened).st_mode):
            rights |= _READ_FOLDER
        rule = _PathBeneath(rights, opened)
        libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)
