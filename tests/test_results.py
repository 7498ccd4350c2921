"""Every table of results/ names the model that it measured, and none of an earlier one looks like today's."""

import json
import shutil

import pytest
from tools.history import MARK, RESULTS, Measured, shipped, tables_of, update

from wordreel.cli.setup.weights import required_weights
from wordreel.runtime.store import WeightStore

MEASURED = Measured.read(RESULTS)


def test_every_table_says_what_it_measured():
    named = [*MEASURED.current, *MEASURED.history, *MEASURED.without]
    assert sorted(named) == sorted(tables_of(RESULTS))


@pytest.mark.skipif(
    not all(WeightStore().has(name) for name in required_weights()), reason="run `wordreel weights fetch`"
)
def test_current_tables_are_of_the_model_that_ships():
    """Another model ships: `python -m tools.history` marks the tables of the old one."""
    assert MEASURED.fingerprint == shipped()


def test_results_of_evaluate_hold_the_fingerprint_of_their_list():
    for name in MEASURED.current:
        for file in (RESULTS / f"{name}.json", *(RESULTS / name).glob("*.json")):
            facts = json.loads(file.read_text("utf-8")) if file.is_file() else {}
            fingerprint = facts.get("measured", {}).get("fingerprint", MEASURED.fingerprint)
            assert fingerprint == MEASURED.fingerprint, file.name


def test_pages_bear_the_marks_that_are_known():
    for page, text in MEASURED.pages(RESULTS).items():
        assert page.read_text("utf-8") == text, page


def test_a_figure_is_the_same_in_every_table():
    if ("default_model" in MEASURED.current) != ("msvd_default" in MEASURED.current):
        pytest.skip("the tables are of different models, and say so")
    known = json.loads((RESULTS / "default_model" / "default_model.json").read_text("utf-8"))
    asked = {"collection": "msvd-test", "direction": "t2v", "label": "default", "postprocessing": "none"}
    (row,) = [row for row in known["rows"] if asked.items() <= row.items()]
    runs = json.loads((RESULTS / "msvd_default.json").read_text("utf-8"))["runs"]
    figures = runs[0]["figures"]
    for short, long in (("r1", "R1"), ("r5", "R5"), ("r10", "R10")):
        assert row["mean"][short] == pytest.approx(figures[long], abs=0.05)


def test_another_model_makes_history_of_the_current_tables(tmp_path):
    results = tmp_path / "results"
    shutil.copytree(RESULTS, results)
    measured = Measured.read(results)
    before, measured.current = measured.fingerprint, ["confidence", "default_model"]
    measured.history = {k: v for k, v in measured.history.items() if k not in measured.current}
    update(measured, "0" * 16, ["confidence"])
    measured.write(results)
    again = Measured.read(results)
    assert (again.fingerprint, again.current) == ("0" * 16, ["confidence"])
    assert before in again.history["default_model"]
    assert MARK in (results / "default_model" / "README.md").read_text("utf-8")
    assert MARK not in (results / "confidence" / "README.md").read_text("utf-8")
    update(again, "0" * 16, ["default_model"])
    again.write(results)
    assert MARK not in (results / "default_model" / "README.md").read_text("utf-8")
