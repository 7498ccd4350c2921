"""Which options of `wordreel evaluate` go together, and where banks are fitted."""

import pytest
import typer
from tests.cli.invoke import shell, shell_json

from wordreel.cli.lab.evaluate_options import MethodOptions


def test_options_that_do_not_belong_are_refused(sims, tmp_path):
    shell("evaluate", "matrix", sims / "a.npy", "--ids", "x.txt", code=2)
    shell("evaluate", "captions", "captions.json", "--save", tmp_path / "x.txt", code=2)
    shell("evaluate", "matrix", sims / "a.npy", sims / "b.npy", "--export-trec", "x", code=2)
    shell("evaluate", "matrix", sims / "a.npy", "--beta", "3", code=2)
    with pytest.raises(typer.BadParameter, match="number or auto"):
        MethodOptions(["dis"], ["many"]).chosen(banked=True)


def test_the_device_is_passed_on(sims, monkeypatch):
    from wordreel.errors import HubnessError
    from wordreel.hubness import device

    monkeypatch.setattr(device, "find_gpu", lambda: None)
    for words in (["qbnorm", "--test", sims / "a.npy"], ["evaluate", "matrix", sims / "a.npy"]):
        words = [*words, "--bank", sims / "bank.npy", "--device"]
        assert shell_json(*words, "cpu") == shell_json(*words, "auto")
        with pytest.raises(HubnessError, match="no CUDA GPU"):
            shell(*words, "cuda")
    pytest.importorskip("torch")
    monkeypatch.setattr(device, "find_gpu", lambda: "cpu")  # torch on the CPU stands in for a GPU
    words = ["qbnorm", "--test", sims / "a.npy", "--bank", sims / "bank.npy", "--method", "is", "--device"]
    assert shell_json(*words, "cuda")["after"] == pytest.approx(shell_json(*words, "cpu")["after"])
