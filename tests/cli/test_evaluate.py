"""Which options of `wordreel evaluate` go together, and where banks are fitted."""

import pytest
import typer
from tests.cli.invoke import shell, shell_json

from wordreel.cli.lab.evaluate_options import BankOptions


def test_options_that_do_not_belong_are_refused(sims, tmp_path):
    shell("evaluate", sims / "a.npy", "--ids", "x.txt", code=2)
    shell("evaluate", sims / "a.npy", "--save", tmp_path / "x.npy", code=2)
    shell("evaluate", "captions.json", "--mask", sims / "mask.npy", code=2)
    shell("evaluate", "captions.json", "--save", tmp_path / "x.txt", code=2)
    with pytest.raises(typer.BadParameter, match="number or auto"):
        BankOptions(["bank.npy"], method=["dis"], beta=["many"]).methods()


def test_options_of_other_sources_do_not_go_with_a_run(sims):
    shell("evaluate", "run.trec", "--qrels", "q.txt", "--export-trec", "x", code=2)
    shell("evaluate", sims / "a.npy", "--qrels", "q.txt", code=2)
    shell("evaluate", sims / "a.npy", sims / "b.npy", "--export-trec", "x", code=2)


def test_the_device_is_passed_on(sims, monkeypatch):
    from wordreel.errors import HubnessError
    from wordreel.hubness import device

    monkeypatch.setattr(device, "find_gpu", lambda: None)
    for words in (["qbnorm", "--test", sims / "a.npy"], ["evaluate", sims / "a.npy"]):
        words = [*words, "--bank", sims / "bank.npy", "--device"]
        assert shell_json(*words, "cpu") == shell_json(*words, "auto")
        with pytest.raises(HubnessError, match="no CUDA GPU"):
            shell(*words, "cuda")
    pytest.importorskip("torch")
    monkeypatch.setattr(device, "find_gpu", lambda: "cpu")  # torch on the CPU stands in for a GPU
    words = ["qbnorm", "--test", sims / "a.npy", "--bank", sims / "bank.npy", "--method", "is", "--device"]
    assert shell_json(*words, "cuda")["after"] == pytest.approx(shell_json(*words, "cpu")["after"])
