"""Extract listed members of a wheel, zip or tar archive and check their hashes.

The archive's own paths are never used: every member is written under a name of our choosing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from wordreel.errors import WeightsCorrupt
from wordreel.util.checksum import file_sha256

CHUNK = 1 << 20


def extract_members(archive: Path, members: Mapping[str, str], into: Path) -> dict[str, Path]:
    """Copy each member to `into/<number>/<base name>`; returns member name to path, hashes checked."""
    import tarfile
    import zipfile

    files: dict[str, Path] = {}
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            names = set(zipped.namelist())
            for number, (name, digest) in enumerate(members.items()):
                if name not in names:
                    raise _absent(archive, name)
                with zipped.open(name) as member:
                    files[name] = _copy(member, into / str(number), name, digest)
        return files
    with tarfile.open(archive) as tarred:
        for number, (name, digest) in enumerate(members.items()):
            try:
                info = tarred.getmember(name)
            except KeyError:
                raise _absent(archive, name) from None
            content = tarred.extractfile(info) if info.isreg() else None
            if content is None:
                raise _absent(archive, name)
            with content:
                files[name] = _copy(content, into / str(number), name, digest)
    return files


def _copy(member: IO[bytes], folder: Path, name: str, digest: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / PurePosixPath(name).name
    with path.open("wb") as out:
        while chunk := member.read(CHUNK):
            out.write(chunk)
    if file_sha256(path) != digest:
        raise WeightsCorrupt(
            f"{name} is not the file it should be (its sha256 differs); nothing was installed"
        )
    return path


def _absent(archive: Path, name: str) -> WeightsCorrupt:
    return WeightsCorrupt(f"{archive.name} has no file {name}; nothing was installed")
