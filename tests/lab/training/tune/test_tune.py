"""A whole tuning of a small library: the real model, made-up pictures of a few kinds, words nobody knows."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Shell
from tests.fakes import Colour, FakeFence, write_media
from tests.lab.training.tune.toys import KINDS

from wordreel.banks import everyday
from wordreel.catalogue.lock import writer_lock
from wordreel.embed.embed_library import embedding_cache
from wordreel.errors import DatasetError, LibraryBusy, LibraryError
from wordreel.experts.base import fingerprint
from wordreel.ingest.add import add
from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune import tune as tuning
from wordreel.lab.training.tune.tune import free_name, tune
from wordreel.library import Library
from wordreel.media.types import Frames, Window
from wordreel.models import model_store
from wordreel.models.reel import checkpoint
from wordreel.models.reel.text_encoder import network_name
from wordreel.types import Track

EACH = 8
QUICK = TuneSettings(steps=60, anchor_batch=32, word_lr=0.05, lr=1e-3, anchor=0.2, kept_at_least=0.0)


class KindFence(FakeFence):
    """One frame whose red is the kind and whose green is the number."""

    def stream(self, path, needs, window=60.0):
        told = json.loads(Path(path).read_bytes().partition(b" ")[2])
        image = np.zeros((1, 4, 4, 3), np.uint8)
        image[..., 0], image[..., 1] = divmod(told["seed"], 100)
        yield Window(0.0, 0.0, tuple(Frames(image, np.zeros(1), 1.0) for _ in needs))


class Looks(Colour):
    """Features of the size that the model reads: those of the kind, and some of the picture's own."""

    def __init__(self):
        super().__init__("appearance")
        from dataclasses import replace

        self.card = replace(self.card, dim=1280)
        self.fingerprint = fingerprint(self.card)

    def extract(self, media):
        kind, number = (int(x) for x in media.images[0, 0, 0, :2])
        shown = np.random.default_rng(kind).gamma(0.5, 1.0, 1280)
        shown += 0.3 * np.random.default_rng(1000 + 100 * kind + number).gamma(0.5, 1.0, 1280)
        return Track(shown[None].astype(np.float32), np.array([[0.0, 0.0]]))


def captions(shuffled=False):
    names = [f"k{kind}n{number}" for kind in range(len(KINDS)) for number in range(EACH)]
    order = np.random.default_rng(0).permutation(len(names)) if shuffled else np.arange(len(names))
    kinds = [int(names[place][1]) for place in order]
    return {
        f"{name}.png": [f"the {KINDS[kind]} of today", f"{KINDS[kind]} again", f"one more {KINDS[kind]}"]
        for name, kind in zip(names, kinds, strict=True)
    }


@pytest.fixture(scope="module", autouse=True)
def _few_everyday_queries():
    every = everyday.queries()[::8]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(everyday, "queries", lambda: every)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("tune")
    for kind in range(len(KINDS)):
        for number in range(EACH):
            write_media(root / "media" / f"k{kind}n{number}.png", kind="image", seed=100 * kind + number)
    library = Library(root / "library")
    add(library.store, [root / "media"], [Looks()], KindFence())
    library.embed()
    return root


@pytest.fixture
def library(made, tmp_path):
    shutil.copytree(made / "library", tmp_path / "library")
    return Library(tmp_path / "library", create=False)


@pytest.fixture(scope="module")
def measured(made, tmp_path_factory):
    """A library after tuning, what was said about it, and what the folds gave."""
    place = tmp_path_factory.mktemp("tuned") / "library"
    shutil.copytree(made / "library", place)
    library = Library(place, create=False)
    folds = []
    with pytest.MonkeyPatch.context() as patch:
        fit = tuning.cross_validate
        patch.setattr(tuning, "cross_validate", lambda *given: folds.append(fit(*given)) or folds[0])
        model, report = tune(library.store, library.weights, captions(), QUICK)
    return Library(place, create=False), model, report, folds[0]


@pytest.fixture(scope="module")
def tuned(measured):
    """A library after tuning, and what was said about it; to be looked at only."""
    return measured[:3]


@pytest.fixture
def _fitted(measured, monkeypatch):
    """For tests of what surrounds the fit: it gives what it gave for the same captions."""
    monkeypatch.setattr(tuning, "cross_validate", lambda *given: measured[3])


def share_right(library):
    """Of the best hits for each made-up word, how many are of its kind."""
    hits = [
        Path(hit.path).stem[1] == str(kind)
        for kind, word in enumerate(KINDS)
        for hit in library.search(f"a {word}", limit=EACH)
    ]
    return np.mean(hits)


def test_words_nobody_knows_are_learned(tuned, made):
    library, model, report = tuned
    assert report.better
    assert report.model == model.name == library.model.name == "reel-tuned"
    assert report.after["R10"] > report.before["R10"] + 20
    assert (report.videos, report.captions, report.words > 0) == (48, 144, True)
    assert set(library.model._words.words) >= set(KINDS)
    assert share_right(library) > share_right(Library(made / "library", create=False)) + 0.3


def test_the_library_holds_it_and_others_do_not(tuned, made, tmp_path):
    library, _, report = tuned
    assert model_store.in_use(library.store) == report.fingerprint
    rows = {row.name: row for row in library.models()}
    assert rows["reel-tuned"].in_use
    assert rows["reel-tuned"].embedded == rows["reel"].embedded == 48
    assert rows["reel-tuned"].fingerprint != rows["reel"].fingerprint
    assert model_store.in_use(Library(made / "library", create=False).store) == "reel"
    # Everything is inside: the moved library answers the same.
    shutil.copytree(library.path, tmp_path / "moved")
    moved = Library(tmp_path / "moved", create=False)
    assert [hit.path for hit in moved.search("a wug")] == [hit.path for hit in library.search("a wug")]
    used = moved.use("reel")
    assert (used.name, used.embedded) == ("reel", 0)
    assert moved.use("reel-tuned").embedded == 0


def test_kept_model_is_the_embedding_that_search_uses(tuned):
    """The tuned file is an ordinary one: the same encoder, its own words, rows of unit length."""
    library, _, report = tuned
    base = checkpoint.load()
    file = checkpoint.load(library.path / model_store.FOLDER / report.fingerprint / model_store.WEIGHTS)
    for name, array in base.encoder.items():
        np.testing.assert_array_equal(file.encoder[name], array)
    changed = {name for name, array in base.tower.items() if not np.array_equal(file.tower[name], array)}
    assert changed <= {"caption.straight.weight", "caption.straight.bias", "out.weight", "out.bias"}
    assert network_name(file).startswith("layers-")
    query = library.model.encode(["a zorp", "nothing of yours"])
    np.testing.assert_allclose(np.linalg.norm([q.vectors[0] for q in query], axis=1), 1, atol=1e-5)


def test_new_videos_are_embedded_by_it(tuned, tmp_path):
    shutil.copytree(tuned[0].path, tmp_path / "library")
    library = Library(tmp_path / "library", create=False)
    write_media(tmp_path / "new" / "k2n50.png", kind="image", seed=250)
    add(library.store, [tmp_path / "new"], [Looks()], KindFence())
    assert library.embed() == 1
    assert "k2n50" in [Path(hit.path).stem for hit in library.search("a dax", limit=EACH + 1)]


def test_banks_and_confidence_work(tuned, tmp_path):
    shutil.copytree(tuned[0].path, tmp_path / "library")
    library = Library(tmp_path / "library", create=False)
    library.banks.build_everyday()
    hits = library.search("a fep")
    assert len(hits) == 10
    assert all(0 <= hit.confidence <= 1 for hit in hits)


def test_same_seed_same_file(tuned, library):
    _, report = tune(library.store, library.weights, captions(), QUICK)
    assert report.fingerprint == tuned[2].fingerprint
    files = [
        (place.path / model_store.FOLDER / report.fingerprint / model_store.WEIGHTS).read_bytes()
        for place in (library, tuned[0])
    ]
    assert files[0] == files[1]
    assert free_name(library.store) == "reel-tuned-2"  # the next one does not take its place
    card = checkpoint.load(library.path / model_store.FOLDER / report.fingerprint / model_store.WEIGHTS).card
    assert free_name(library.store, card) == "reel-tuned"  # the same one again is no other
    assert free_name(library.store, {**card, "tuned": {}}) == "reel-tuned-2"


def test_nonsense_is_refused(library):
    before = library.store.digest()
    model, report = tune(library.store, library.weights, captions(shuffled=True), QUICK)
    assert model is None
    assert (report.better, report.model, report.fingerprint) == (False, "", "")
    assert model_store.in_use(library.store) == "reel"
    assert not list((library.path / model_store.FOLDER).glob("*"))
    assert library.store.digest() == before


@pytest.mark.usefixtures("_fitted")
def test_a_dry_run_changes_nothing(library):
    model, report = tune(library.store, library.weights, captions(), QUICK, dry_run=True)
    assert model is None
    assert report.better
    assert model_store.in_use(library.store) == "reel"
    assert not (library.path / model_store.FOLDER).exists()


@pytest.mark.usefixtures("_fitted")
def test_stopped_while_embedding_the_old_model_works(library):
    def stop(now):
        if now.stage == "embedding clips":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(library.store, library.weights, captions(), QUICK, on_progress=stop)
    again = Library(library.path, create=False)
    assert again.model.name == "reel"
    assert len(again.search("a zorp")) == 10
    assert again.use("reel-tuned").name == "reel-tuned"  # it was whole before anything was embedded
    assert embedding_cache(again.store, again.model).missing() == []


def test_other_models_are_not_tuned(library):
    library.use("bridge")
    with pytest.raises(LibraryError, match=r"'bridge'.*wordreel use reel"):
        tune(library.store, library.weights, captions(), QUICK)


def test_nobody_tunes_while_another_writes(library):
    with writer_lock(library.path / "lock"), pytest.raises(LibraryBusy):
        tune(library.store, library.weights, captions(), QUICK)


def write(place, told):
    lines = ["file,caption", *(f"{name},{text}" for name, texts in told.items() for text in texts)]
    place.write_text("\n".join(lines), encoding="utf-8")
    return str(place)


@pytest.mark.usefixtures("_fitted")
def test_the_verb(library, tmp_path, monkeypatch):
    monkeypatch.setattr("wordreel.lab.training.settings.TuneSettings", lambda seed: QUICK)
    told = write(tmp_path / "captions.csv", {**captions(), "gone.mp4": ["not here"]})
    shell = Shell(library.path)
    found = shell.json("tune", told, "--dry-run")
    assert found["better"]
    assert found["missing"] == ["gone.mp4"]

    from typer.testing import CliRunner

    from wordreel.cli.app import app

    result = CliRunner().invoke(app, ["tune", str(library.path), told])  # as the help spells it
    assert result.exit_code == 0, result.output
    assert "reel-tuned" in result.stdout
    assert "wordreel use reel" in result.stdout
    assert "gone.mp4" in result.stderr
    assert model_store.in_use(library.store) != "reel"
    assert CliRunner().invoke(app, ["tune", "a", "b", "c"]).exit_code == 2


def test_the_verb_says_what_is_wrong(library, tmp_path):
    shell = Shell(library.path)
    with pytest.raises(DatasetError, match="at least 20"):
        shell("tune", write(tmp_path / "few.csv", dict(list(captions().items())[:5])))
    with pytest.raises(DatasetError, match="wordreel list"):
        shell("tune", write(tmp_path / "none.csv", {"x.mp4": ["a"]}))
    with pytest.raises(DatasetError):
        shell("tune", str(tmp_path / "missing.csv"))
    (tmp_path / "bad.csv").write_text("name,words\na,b\n")
    with pytest.raises(DatasetError, match="path,caption"):
        shell("tune", str(tmp_path / "bad.csv"))


def test_a_stopped_verb_says_what_is_lost_and_changes_nothing(library, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    def stopped(*given):
        raise KeyboardInterrupt

    told = write(tmp_path / "captions.csv", captions())
    before = {path: path.stat().st_mtime_ns for path in library.path.rglob("*") if path.is_file()}
    monkeypatch.setattr("wordreel.lab.training.tune.tune.cross_validate", stopped)
    result = CliRunner().invoke(app, ["tune", str(library.path), told])
    assert result.exit_code == 130
    assert "keeps the model it uses" in result.stderr
    assert "starts over" in result.stderr
    assert model_store.in_use(library.store) == "reel"
    assert not (library.path / model_store.FOLDER).exists()
    after = {path: path.stat().st_mtime_ns for path in library.path.rglob("*") if path.is_file()}
    assert {path for path in before | after if before.get(path) != after.get(path)} <= {library.path / "lock"}
