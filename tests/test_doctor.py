from tests.library.fakes import Colour, FakeFence, Talk, write_media
from tests.search.conftest import ColourModel

from wordreel.api import Library
from wordreel.doctor import run_checks
from wordreel.library import LibraryStore, add
from wordreel.weights.store import WeightStore


def test_missing_weights_are_an_error_that_names_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    assert not WeightStore().has("minilm")
    found = {finding.what: finding for finding in run_checks(tmp_path / "library")}
    assert found["expert appearance"].state == "ok"  # its weights come with wordreel
    assert found["expert motion"].state == "error"
    assert found["expert senet154"].state == "note"
    assert found["sentence encoder"].next_step.command == "weights fetch"
    assert found["expert motion"].next_step.command == "weights fetch i3d-kinetics400"
    assert found["library"].state == "note"
    assert found["python"].state == "ok"


def test_features_of_an_earlier_version_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        write_media(tmp_path / "media" / "film.mp4")
        add(store, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
        (version,) = {row.fingerprint for row in store.tracks() if row.expert == "colour"}
    monkeypatch.setattr(Library, "model", ColourModel())
    what = "features of colour"
    monkeypatch.setattr(ColourModel, "outdated_tracks", {"colour": frozenset({"0" * 16})})
    assert what not in {finding.what for finding in run_checks(tmp_path / "library")}
    monkeypatch.setattr(ColourModel, "outdated_tracks", {"colour": frozenset({version})})
    found = {finding.what: finding for finding in run_checks(tmp_path / "library")}
    assert found[what].detail.startswith("1 items have those of an earlier version")
    assert found[what].next_step.command == "add FOLDER"
