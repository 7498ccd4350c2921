"""`wordreel results`."""

from pathlib import Path

import pytest
from tests.cli.invoke import shell

from wordreel.errors import EvaluationError
from wordreel.lab.reports.report_files import BEGIN, END


def test_results_write_and_check(sims):
    shell("evaluate", "matrix", sims / "a.npy", "--out", sims / "kept" / "a", "--title", "First | one")
    (sims / "kept" / "other.json").write_text("[]")
    readme = sims / "kept" / "README.md"
    readme.write_text(f"# Mine\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    shell("results", sims / "kept", "--check", code=1)
    shell("results", sims / "kept", "--write")
    shell("results", sims / "kept", "--check")
    text = readme.read_text()
    made = shell("results", sims / "kept").stdout
    assert made in text
    assert text.startswith("# Mine\n")
    assert text.endswith("\nafter\n")
    assert "First \\| one" in text
    assert "| a | – | text → video | none | 60 | 20 |" in text
    readme.write_text("no marks")
    with pytest.raises(EvaluationError, match="marks are missing"):
        shell("results", sims / "kept", "--write")
    (sims / "empty").mkdir()
    with pytest.raises(EvaluationError, match="no results"):
        shell("results", sims / "empty")


def test_the_committed_tables_are_what_the_results_say():
    folder = Path(__file__).parents[2] / "results"
    shell("results", folder, "--check")
