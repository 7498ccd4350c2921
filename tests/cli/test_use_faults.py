"""`wordreel use` interrupted, and with a checkpoint that is called as a built-in model is."""

import pytest
from typer.testing import CliRunner

from wordreel.cli.app import app


def test_an_interrupt_says_that_the_old_model_stays(shell, monkeypatch):
    from wordreel.library import Library
    from wordreel.progress import Progress

    def interrupted(self, model, on_progress=None, **_):
        on_progress(Progress("embedding clips", 1, 2))
        raise KeyboardInterrupt

    monkeypatch.setattr(Library, "use", interrupted)
    done = CliRunner().invoke(app, ["use", "joint", "--library", str(shell.library)])
    assert done.exit_code == 130
    assert "The previous model stays in use; the same command resumes" in done.stderr


def test_only_one_model_is_in_use(shell, tmp_path):
    pytest.importorskip("torch")
    from tests.lab.models import twins
    from tests.lab.models.small import model

    from wordreel.lab.models import checkpoint
    from wordreel.lab.models.config import CEConfig, ExpertConfig, TextConfig

    text = TextConfig("vectors", 3, "vlad", 2, source="word2vec:words.txt")
    made = twins.stir(model(CEConfig((ExpertConfig("clip", 512),), text, 8)))
    checkpoint.save(tmp_path / "mine", made, "joint")
    (tmp_path / "mine" / "words.txt").write_text("train 1 0 0\nto 0 0 1\n")
    print_of = shell.json("use", str(tmp_path / "mine"))["fingerprint"]
    assert [row["fingerprint"] for row in shell.json("use") if row["in_use"]] == [print_of]
    shell("use", "joint")
    used = [row for row in shell.json("use") if row["in_use"]]
    assert len(used) == 1
    assert used[0]["fingerprint"] != print_of
