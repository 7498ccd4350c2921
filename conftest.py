"""The examples in the docstrings of the public API run on a small library of synthetic films."""

import shutil
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem

EXAMPLES = ("wordreel.api", "wordreel")


@pytest.fixture(scope="session")
def example_films(tmp_path_factory):
    """A folder with three fake films, and a library that has them."""
    from tests.example_library import build

    root = tmp_path_factory.mktemp("examples")
    build(root / "films", root / "library")
    return root


@pytest.fixture(autouse=True)
def _example_library(request):
    """What the examples call `library`, `media` and `folder`: a fresh copy for each docstring."""
    item = request.node
    if not isinstance(item, DoctestItem) or item.dtest.globs.get("__name__") not in EXAMPLES:
        yield
        return
    from tests.example_library import ColourModel

    import wordreel

    root: Path = request.getfixturevalue("example_films")
    folder: Path = request.getfixturevalue("tmp_path")
    shutil.copytree(root / "library", folder / "library")
    with wordreel.Library(folder / "library", model=ColourModel()) as library:
        names = {name: getattr(wordreel, name) for name in wordreel.__all__ if name != "__version__"}
        item.dtest.globs.update(names, library=library, media=root / "films", folder=folder, Path=Path)
        yield
