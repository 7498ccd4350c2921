"""A small library made of fake media, and a model that knows colours."""

from pathlib import Path

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Talk, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.ingest.add import add
from wordreel.models.base import Model
from wordreel.search.searcher import Searcher
from wordreel.types import QueryEmbedding

PALETTE = {"red": 0, "green": 1, "blue": 2}


class ColourModel(Model):
    """A video is its mean colour, a query the colours it names; words weigh through "talk"."""

    name = "colours"
    experts: tuple[str, ...] = ("colour", "talk")
    track_experts = experts
    dim = 3
    fingerprint = "0123456789abcdef"

    def embed(self, tracks, clips):
        vectors = np.zeros((len(clips), 2, 3), np.float32)
        available = np.zeros((len(clips), 2), bool)
        for number, clip in enumerate(clips):
            for place, expert in enumerate(self.experts):
                track = tracks.get(expert)
                if track is None:
                    continue
                inside = clip.whole | ((track.times[:, 0] < clip.end) & (track.times[:, 1] > clip.start))
                if inside.any():
                    mean = track.values[inside, :3].mean(axis=0) if expert == "colour" else np.ones(3)
                    vectors[number, place] = mean / np.linalg.norm(mean)
                    available[number, place] = True
        return vectors, available

    def encode(self, texts):
        made = []
        for text in texts:
            wanted = np.zeros(3, np.float32)
            for name, place in PALETTE.items():
                wanted[place] = name in text
            made.append(QueryEmbedding(np.stack([wanted, wanted]), np.array([1.0, 0.1], np.float32), text))
        return made

    def explain(self, query, tracks, clip):
        return {name: (f"saw {name}", None) for name in tracks}


@pytest.fixture
def model():
    return ColourModel()


@pytest.fixture
def store(tmp_path: Path):
    folder = tmp_path / "media"
    for seed in range(6):
        write_media(folder / f"part{seed % 2}" / f"film{seed}.mp4", seconds=12.0 + 20 * seed, seed=seed)
    write_media(folder / "still.png", kind="image", seed=40)
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        add(made, [folder], [Colour(), Talk()], FakeFence())
        yield made


@pytest.fixture
def searcher(store, model):
    embed_library(store, model)
    return Searcher.open(store, model)


@pytest.fixture
def films(tmp_path):
    return sorted((tmp_path / "media").rglob("*.mp4"))
