"""Linux's Landlock: from now on this thread opens nothing but a few named files and folders."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from stat import S_ISDIR

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
