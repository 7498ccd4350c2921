"""Operations that an earlier, stopped run of the harness has finished on the same code."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.crash.run import ROOT

from wordreel.util.atomic import atomic_write, make_dir

CODE = ("src/wordreel", "tests/crash", "tests/ingest", "tests/search")  # what the trials run
SUFFIXES = (".py", ".c", ".sql")


def code_digest() -> str:
    total = hashlib.sha256()
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    for path in sorted(files):
        total.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def commit() -> str:
    """The commit that last changed the sources, "-dirty" where something is changed since."""
    last = _git("log", "-1", "--format=%h", "--abbrev=12", "--", "src/wordreel")
    return f"{last or 'unknown'}{'-dirty' if _git('status', '--porcelain', '--', 'src/wordreel') else ''}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


class FinishedOperations:
    """What came of operations, one file for each below a folder of the code and the size of the sample."""

    def __init__(self, folder: Path, sample: int) -> None:
        self._folder = folder / f"{code_digest()}-{sample or 'all'}"

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def __contains__(self, name: str) -> bool:
        return self._path(name).is_file()

    def __getitem__(self, name: str) -> Any:
        return json.loads(self._path(name).read_bytes())

    def add(self, found: Any) -> None:
        make_dir(self._folder)
        atomic_write(self._path(found["operation"]), json.dumps(found).encode())
