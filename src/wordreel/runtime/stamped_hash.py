"""Hashes of large files, computed again only after a change: a stamp says which file had which hash."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from wordreel.runtime.mapped_arrays import write_shared
from wordreel.util.checksum import file_sha256

STAMPS = "derived/checked"  # files that had their hash, one small file each
STAMPED = 2**20  # bytes from which on a hash takes longer than to look for its stamp
_checked: set[tuple[str, int, int, str]] = set()


def sha256_of(path: Path, stamps: Path) -> str:
    """Return the hash of a file, computed again only if its size, times or inode have changed."""
    facts = path.stat()
    place = str(path.resolve())
    known = [place, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino]
    stamped = stamps / f"{hashlib.sha256(place.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        stamp = json.loads(stamped.read_bytes())
        if stamp["file"] == known:
            return str(stamp["sha256"])
    digest = file_sha256(path)
    with suppress(OSError):  # a store that cannot be written costs only time
        write_shared(stamped, json.dumps({"file": known, "sha256": digest}).encode())
    return digest


def has_sha256(path: Path, expected: str, stamps: Path | None = None) -> bool:
    """Return whether a file has this hash; each process asks once for each state of the file.

    With `stamps`, a folder, a large file is read again only after a change, in any process.
    """
    facts = path.stat()
    key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns, expected)
    if key in _checked:
        return True
    stamped = stamps is not None and facts.st_size >= STAMPED
    if (sha256_of(path, stamps) if stamps is not None and stamped else file_sha256(path)) != expected:
        return False
    _checked.add(key)
    return True
