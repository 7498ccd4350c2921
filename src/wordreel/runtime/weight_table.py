"""All weights by name: those inside packages of the package index, and checkpoints that users add themselves.

They are listed in `data/weights.json`. Every file in a package is pinned by version and by hash; no code of a
package is ever imported, built or run. Of published checkpoints only verified files are listed. CLIP-like
models are in `backbones/data/named_backbones.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wordreel.errors import NextStep, WeightsError

TABLE = Path(__file__).parent / "data" / "weights.json"


@dataclass(frozen=True)
class PackageArchive:
    """One archive on the package index, and the members extracted from it (member name to sha256)."""

    package: str
    version: str
    filename: str
    sha256: str
    members: Mapping[str, str]


@dataclass(frozen=True)
class HubCopy:
    """One file on a model hub that holds the same weights: a second source, should a package vanish.

    An empty `revision` is the newest commit; the converter checks that the weights are the same.
    """

    hub_id: str
    file: str
    revision: str = ""


@dataclass(frozen=True)
class PackageWeights:
    """Weights by name: the archives they come from, and the converter to what a network loads.

    `converter` is "module:function" for `convert(files: Mapping[str, Path], out: Path) -> None`, which is
    given every member of every source by member name and writes `outputs` into the folder `out`. Without a
    converter the members are copied as they are, and `outputs` are their base names. Raise
    `converter_version` whenever the output changes. Version and name of the converter are part of every
    fingerprint: after a move, `first_converter` is the name that it had first.

    `hub_copy` is where they are looked for next; a converter is given its file by its name there. `fallback`
    says what happens without these weights; empty if experts cannot work without them.

    >>> PACKAGED["minilm"].outputs
    ('model.safetensors', 'tokenizer.json')
    """

    name: str
    sources: tuple[PackageArchive, ...]
    outputs: tuple[str, ...]
    licence: str
    converter: str | None = None
    converter_version: int = 0
    first_converter: str = ""
    note: str = ""
    megabytes: float = 0.0  # to download
    hub_copy: HubCopy | None = None
    fallback: str = ""

    @property
    def members(self) -> dict[str, str]:
        """Member name to sha256 over all sources."""
        return {name: digest for source in self.sources for name, digest in source.members.items()}

    def next_step(self, again: bool = False) -> NextStep:
        """Return how to get these weights (again)."""
        return NextStep("fetch the weights", f"weights fetch {'--again ' if again else ''}{self.name}")


@dataclass(frozen=True)
class PublishedWeights:
    """One published checkpoint.

    `network` is "module:NAME" of the network, `rename` "module:function" of a function that updates older
    key names, `ignore` the prefixes of keys of unused parts. `digest` is the start of the file's sha256 where
    the publisher puts it into the file name. `sidecar` is for weights too large for one ONNX file.

    >>> PUBLISHED["vggish"].file
    'vggish-10086976.pth'
    """

    name: str
    title: str
    file: str
    project: str
    network: str
    licence: str
    rename: str = ""
    ignore: tuple[str, ...] = ()
    digest: str = ""
    plain_pickle: bool = False
    sidecar: bool = False
    megabytes: float = 0.0

    converter: str = "wordreel.runtime.hub:convert"
    converter_version: int = 1
    first_converter: str = "wordreel.weights.hub:convert"
    output_names: tuple[str, ...] = ("network.onnx",)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The files that the converter writes."""
        return (*self.output_names, "network.weights") if self.sidecar else self.output_names

    def next_step(self, again: bool = False) -> NextStep:
        """Return how to get these weights (again)."""
        text = f"get {self.file} as published by {self.project} and add it"
        return NextStep(text, f"weights add {self.name} --file {self.file}")


WeightsEntry = PackageWeights | PublishedWeights


def read_archives(entries: list[dict[str, object]]) -> tuple[PackageArchive, ...]:
    """Return the archives of a list in a JSON file."""
    return tuple(PackageArchive(**entry) for entry in entries)  # type: ignore[arg-type]


def _read_table() -> tuple[dict[str, PackageWeights], dict[str, PublishedWeights]]:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    packaged, published = {}, {}
    for entry in table["packages"]:
        copy = entry.get("hub_copy")
        facts = {
            **entry,
            "sources": read_archives(entry["sources"]),
            "outputs": tuple(entry["outputs"]),
            "hub_copy": HubCopy(**copy) if copy else None,
        }
        packaged[entry["name"]] = PackageWeights(**facts)
    for entry in table["published"]:
        ignore = tuple(entry.get("ignore", ()))
        published[entry["name"]] = PublishedWeights(**{**entry, "ignore": ignore})
    return packaged, published


PACKAGED, PUBLISHED = _read_table()


def names() -> tuple[str, ...]:
    """Return the name of all weights, those in packages first.

    >>> "minilm" in names() and "senet154" in names()
    True
    """
    return (*PACKAGED, *PUBLISHED)


def find(name: str) -> WeightsEntry:
    """Return the entry of that name; raise a WeightsError if there is none."""
    entry = PACKAGED.get(name) or PUBLISHED.get(name)
    if entry is None:
        raise WeightsError(f"there are no weights named {name!r}", NextStep("list all weights", "weights"))
    return entry
