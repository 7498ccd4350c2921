"""What all tests share: a home folder of their own, networks loaded once, and a small library of synthetic
films for the examples in the docstrings of the public API."""

import hashlib
import os
import re
import shutil
import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import DoctestItem
from hypothesis import settings
from tests.shield import Shield

EXAMPLES = re.compile(r"wordreel|wordreel\.library")  # the modules whose examples have a library
NETWORKS = 16  # that stay loaded

settings.register_profile("bounded", derandomize=True, deadline=None)  # the same examples in every run
settings.load_profile("bounded")


def pytest_configure(config):
    """Before any test is collected: some ask the weight store whether they can run."""
    os.environ["WORDREEL_EYES"] = "small"  # they come with wordreel, and are six times as fast
    if not hasattr(config, "workerinput"):  # of pytest-xdist, which inherits the environment
        shield = Shield()
        config.add_cleanup(shield.lower)


@pytest.fixture(scope="session", autouse=True)
def _load_networks_once():
    """A network is loaded once for all tests of a process: loading takes longer than most of them."""
    from wordreel.runtime import sessions as runtime

    load, loaded = runtime.Network.__init__, OrderedDict()

    def identity(model):
        if isinstance(model, bytes):
            return hashlib.sha256(model).hexdigest()
        status = Path(model).stat()
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size

    def load_once(self, model):
        key = (identity(model), runtime.threads())
        if key not in loaded:
            load(self, model)
            loaded[key] = dict(vars(self))
        loaded.move_to_end(key)
        vars(self).update(loaded[key])
        if len(loaded) > NETWORKS:
            loaded.popitem(last=False)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime.Network, "__init__", load_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _encode_banks_once(tmp_path_factory):
    """The same long list of texts is encoded once: every new library has the same bank of queries."""
    from wordreel.models.joint import text_tower

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers
    encode = text_tower.TextTower._encode

    def encode_once(self, texts):
        if len(texts) <= text_tower.MAX_CACHED_BATCH:
            return encode(self, texts)
        key = hashlib.sha256(repr((self.fingerprint, list(texts))).encode()).hexdigest()
        file = folder / f"texts-{key}.npy"
        if not file.is_file():
            new = file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            with new.open("wb") as out:
                np.save(out, encode(self, texts))
            new.replace(file)
        return np.load(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_tower.TextTower, "_encode", encode_once)
        yield


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
    if not isinstance(item, DoctestItem) or not EXAMPLES.fullmatch(item.dtest.globs["__name__"]):
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
