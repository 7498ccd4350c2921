"""A library with experts and models that cost nothing, driven by plain calls whose answers are plain values.

Everything goes through `wordreel.Library`, as for the command line; only what decodes, recognises and embeds
is replaced. The test's own process and the second one have a `Player` each.
"""

import os
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, Shots, Talk
from tests.search.conftest import ColourModel

from wordreel.banks import manager
from wordreel.banks.sources import BankQueries
from wordreel.embed.embed_library import embedding_cache
from wordreel.experts import registry
from wordreel.index import cached
from wordreel.ingest import add as ingest
from wordreel.library import Library
from wordreel.maintain.backup import restore
from wordreel.maintain.verify import verify
from wordreel.models import model_store
from wordreel.search.query_fields import SearchNorm
from wordreel.types import QueryEmbedding

EXPERTS = {"colour": Colour, "talk": Talk, "shots": Shots}
EVERYDAY = [f"{one} and {two} {thing}" for one in ("red", "green", "blue") for two in ("red", "green", "blue")
            for thing in ("dogs", "cars", "skies", "seas", "birds", "hats", "cups", "kites", "boats", "roads",
                          "doors", "walls")]  # fmt: skip


class TintModel(ColourModel):
    """Another model of the same tracks: it reads no words, and sees brightness too."""

    name = "tints"
    experts = track_experts = ("colour",)
    dim = 4
    fingerprint = "fedcba9876543210"

    def embed(self, tracks, clips):
        vectors = np.zeros((len(clips), 1, 4), np.float32)
        available = np.zeros((len(clips), 1), bool)
        track = tracks.get("colour")
        for number, clip in enumerate(clips if track is not None else ()):
            inside = clip.whole | ((track.times[:, 0] < clip.end) & (track.times[:, 1] > clip.start))
            if inside.any():
                mean = track.values[inside].mean(axis=0) + np.float32(1)
                vectors[number, 0] = mean / np.linalg.norm(mean)
                available[number, 0] = True
        return vectors, available

    def encode(self, texts):
        rows = [np.append(query.vectors[0], np.float32(0.5))[None] for query in super().encode(texts)]
        return [
            QueryEmbedding(row / np.linalg.norm(row), np.ones(1, np.float32), text)
            for row, text in zip(rows, texts, strict=True)
        ]


MODELS = {"colours": ColourModel, "tints": TintModel}


class Decoder(FakeFence):
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@contextmanager
def fakes(scan_up_to: int = 96):
    """Replace what costs time; more than `scan_up_to` bytes of vectors are searched with an index."""
    with (
        patch.object(registry, "load", lambda name, weights: EXPERTS[name]()),
        patch.object(ingest, "Fence", Decoder),
        patch.object(manager, "builtin", lambda: BankQueries(tuple(EVERYDAY), "everyday queries of a test")),
        patch.object(model_store, "BUILT_IN", tuple(MODELS)),
        patch.object(model_store, "DEFAULT", "colours"),
        patch.object(model_store, "open_model", lambda store, weights, key=None: _open_model(store, key)),
        patch.object(cached, "EXACT_BYTES", scan_up_to),
    ):
        yield


def _open_model(store, key):
    return MODELS[key or model_store.in_use(store)]()


class Player:
    """One open library; each method is a command whose arguments and answer could be JSON."""

    def __init__(self, library: str, media: str) -> None:
        self.path, self.media = library, media
        self.library = Library(library)

    def close(self) -> None:
        self.library.close()

    def restart(self) -> None:
        self.library.close()
        self.library = Library(self.path)

    def add(self, on_progress=None) -> dict:
        report = self.library.add(self.media, experts=list(EXPERTS), jobs=1, on_progress=on_progress)
        return {"failed": len(report.failed) + len(report.still_failed)}

    def remove(self, name: str) -> list[str]:
        return self._names(self.library.remove(Path(self.media) / name))

    def remove_missing(self) -> list[str]:
        return self._names(self.library.remove_missing())

    def search(
        self, text: str, norm: SearchNorm = "none", bank: str | None = None, moments: bool = False
    ) -> list:
        beta = 8.0 if norm in ("is", "dis") else None
        results = self.library.search(text, norm=norm, bank=bank, beta=beta, moments=moments, limit=100)
        return [
            [self._name(str(hit.path)), hit.content, hit.start, hit.end, hit.score, hit.confidence]
            for hit in results
        ]

    def build_bank(self, name: str, texts: list[str]) -> None:
        self.library.banks.build(name, texts, "a test")

    def add_queries(self, name: str, texts: list[str]) -> int:
        return self.library.banks.add(name, texts, "a test")

    def remove_queries(self, name: str, texts: list[str]) -> int:
        return self.library.banks.remove(name, texts)

    def drop_bank(self, name: str) -> None:
        self.library.banks.delete(name)

    def banks(self) -> dict[str, list[str]]:
        return {row.name: list(self.library.banks.show(row.name).texts) for row in self.library.banks.list()}

    def use(self, model: str, on_progress=None) -> None:
        self.library.use(model, on_progress)

    def model(self) -> str:
        return model_store.in_use(self.library.store)

    def reindex(self) -> None:
        self.library.reindex()

    def compact(self) -> int:
        with self.library.store.writing():
            return embedding_cache(self.library.store, self.library.model).compact()

    def backup(self, folder: str) -> list[str]:
        return list(self.library.backup(folder).damaged)

    def restore(self, source: str, target: str) -> list[str]:
        """Restore a backup and go on with the library that it makes."""
        damaged = list(restore(source, target).damaged)
        self.library.close()
        self.path = target
        self.library = Library(target)
        return damaged

    def files(self) -> dict[str, str]:
        return {self._name(file.path): file.content for file in self.library.store.files()}

    def digest(self) -> str:
        return digest_of(self.library.store)

    def ids(self) -> dict[str, dict[str, list]]:
        """What every id of a clip and of a bank's query stands for."""
        clips = self.library.store.clips()
        banks = [self.library.banks.show(row.name) for row in self.library.banks.list()]
        return {
            "clips": {str(c.id): [c.content, c.start, c.end, c.whole] for c in clips},
            "queries": {
                str(number): [bank.name, text]
                for bank in banks
                for number, text in zip(bank.ids, bank.texts, strict=True)
            },
        }

    def problems(self) -> list[str]:
        """What is broken; media that left the disk and alike fake tracks are not."""
        found = verify(self.library.store)
        return [f"{p.kind}: {p.what}" for p in found if not p.note and p.kind != "degenerate"]

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self.media)

    def _names(self, paths) -> list[str]:
        return sorted(self._name(path) for path in paths)
