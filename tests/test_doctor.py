from wordreel.doctor import run_checks
from wordreel.weights.store import WeightStore


def test_missing_weights_are_an_error_that_names_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    assert not WeightStore().has("minilm")
    found = {finding.what: finding for finding in run_checks(tmp_path / "library")}
    assert found["expert appearance"].state == "error"
    assert found["expert senet154"].state == "note"
    assert found["sentence encoder"].next_step.command == "weights fetch"
    assert found["expert appearance"].next_step.command == "weights fetch efficientnet-lite2"
    assert found["library"].state == "note"
    assert found["python"].state == "ok"
