"""What verbs are tried on: a library with a title card, a dull picture and a broken file, and matrices."""

import json
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

from wordreel.cli.app import app
from wordreel.demo.film import title_card, write_film


class Shell:
    """Runs verbs on one library; errors that the program would print come back as they are."""

    def __init__(self, library):
        self.library = library

    def __call__(self, *words, code=0):
        result = CliRunner().invoke(app, [*map(str, words), "--library", str(self.library)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result.stdout

    def json(self, *words, code=0):
        return json.loads(self(*words, "--json", code=code))


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli")
    media = root / "media"
    (media / "signs").mkdir(parents=True)
    write_film(
        media / "signs" / "bakery.mp4", title_card(["GRAND OPENING", "Miller's Bakery"], 3, (150, 40, 50))
    )
    write_film(media / "station.mp4", title_card(["Platform 9", "to Vienna"], 3, (20, 60, 50)))
    (media / "broken.mp4").write_bytes(b"\x00" * 100)
    (media / "notes.txt").write_text("not media")
    shell = Shell(root / "library")
    report = shell.json("add", str(media), "--experts", "clip,ocr,shots")
    return root, report


@pytest.fixture
def shell(built, tmp_path):
    """A copy of the library for one test to change. The media stay where they are."""
    shutil.copytree(built[0] / "library", tmp_path / "library")
    return Shell(tmp_path / "library")


@pytest.fixture
def wordreel(tmp_path):
    """Verbs on a library that is not there yet."""
    return Shell(tmp_path / "library")


@pytest.fixture
def media(built):
    return built[0] / "media"


@pytest.fixture(scope="session")
def report(built):
    return built[1]


@pytest.fixture
def sims(tmp_path):
    """A folder of similarity matrices: 60 captions of 20 videos, twice, a bank, a mask and caption counts."""
    rng = np.random.default_rng(0)
    right = np.repeat(np.eye(20), 3, axis=0)
    hubs = np.linspace(0, 0.5, 20)
    for name, strength in (("a", 0.4), ("b", 0.9)):
        values = rng.normal(size=(60, 20)) * 0.4 + strength * right + hubs
        np.save(tmp_path / f"{name}.npy", (values / 4).astype(np.float32))
    np.save(tmp_path / "bank.npy", ((rng.normal(size=(200, 20)) * 0.4 + hubs) / 4).astype(np.float32))
    np.save(tmp_path / "mask.npy", rng.random((20, 3)) < 0.8)
    (tmp_path / "counts.txt").write_text(" ".join(["2", "4"] * 10))
    return tmp_path
