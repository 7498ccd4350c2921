from pathlib import Path

import pytest

from wordreel.catalogue.store import LibraryStore


@pytest.fixture
def store(tmp_path: Path):
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        yield made


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    folder.mkdir()
    return folder
