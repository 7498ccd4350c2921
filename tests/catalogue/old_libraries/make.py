"""Write the library of an earlier schema with the code of its time; see README.md in this folder.

    cd OLD_CHECKOUT && PYTHONPATH=src:. python …/make.py /films out.zip

Media lie in FILMS while the library is made, which remembers their paths. The archive holds both.
"""

import shutil
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fakes import FakeFence, experts, write_media
from tests.search.conftest import ColourModel

from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add import add

FILES: dict[str, dict[str, Any]] = {
    "poppies.mp4": {"seconds": 20.0, "seed": 2594},
    "meadow.mp4": {"seconds": 65.0, "seed": 482},
    "part/sea.mp4": {"seconds": 75.0, "seed": 4060},
    "part/gone.mp4": {"seconds": 8.0, "seed": 7},
    "song.mp3": {"seconds": 40.0, "seed": 11, "kind": "audio"},
    "still.png": {"seed": 40, "kind": "image"},
    "broken.mp4": {"bad": "broken"},
}
BANK = ["red", "green dogs", "blue sea", "grey"]


def embed(store: LibraryStore) -> None:
    try:
        embed_library = import_module("wordreel.embed.embed_library").embed_library
    except ImportError:
        embed_library = import_module("wordreel.search.refresh").refresh
    embed_library(store, ColourModel())


def fill(store: LibraryStore, films: Path) -> None:
    add(store, [films], experts(), FakeFence())
    embed(store)
    store.remove([films / "part" / "gone.mp4"])
    meadow = store.file(films / "meadow.mp4")
    assert meadow is not None
    content = meadow.content
    try:
        banks, captions = (import_module(f"wordreel.catalogue.{name}") for name in ("banks", "captions"))
    except ImportError:
        return
    with store.writing():
        create = banks.create_bank if hasattr(banks, "create_bank") else banks.make_bank
        create(store, "mine", BANK, "a test")
        captions.put_captions(store.catalogue, content, "films", "train", [("a green meadow", None, None)])
        store.catalogue.run("INSERT INTO settings VALUES ('model', 'bridge')")
    try:
        jobs = import_module("wordreel.catalogue.jobs")
    except ImportError:
        return
    has_names = hasattr(jobs, "save_upload_name")
    uploads = jobs if has_names else import_module("wordreel.catalogue.uploads")
    jobs.add_job(store, "add", "add films", {"paths": [str(films)]})
    uploads.save_upload_name(store, content, "my meadow.mp4")


def main(films: Path, archive: Path) -> None:
    library = films.with_name("library")
    for name, facts in FILES.items():
        write_media(films / name, **facts)
    with LibraryStore.create_or_open(library) as store:
        fill(store, films)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for folder in (library, films):
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.name != "lock":
                    entry = zipfile.ZipInfo(f"{folder.name}/{path.relative_to(folder)}")
                    out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    shutil.rmtree(library)
    shutil.rmtree(films)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
