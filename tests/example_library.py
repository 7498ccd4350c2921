"""Three synthetic films (red, green, blue), a library that has them, and a model that knows colours."""

from pathlib import Path

from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.search.conftest import ColourModel

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.ingest.add import add

__all__ = ["ColourModel", "build"]

FILMS = {"poppies": (20.0, 2594), "meadow": (65.0, 482), "sea": (75.0, 4060)}


def build(films: Path, library: Path) -> None:
    """Write the films and add them to a new library; nothing is decoded and no weights are needed."""
    for name, (seconds, seed) in FILMS.items():
        write_media(films / f"{name}.mp4", seconds=seconds, seed=seed)
    with LibraryStore.create_or_open(library) as store:
        add(store, [films], [Colour(), Talk()], FakeFence())
        embed_library(store, ColourModel())
