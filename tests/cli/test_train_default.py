"""`wordreel train default`, from a library and captions to a file that the model opens."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Shell

from wordreel.errors import TrainingError

pytest.importorskip("torch")

SMALL = ["--epochs", "1", "--batch", "2", "--device", "cpu"]


def write_captions(folder):
    path = folder / "captions.json"
    path.write_text(json.dumps({"bakery": ["a bakery opens", "bread"], "station.mp4": ["to Vienna"]}))
    (folder / "val.txt").write_text("station.mp4\n")
    return str(path)


@pytest.fixture
def captions(tmp_path):
    return write_captions(tmp_path)


def words(tmp_path, captions, *more):
    return ["train", "default", "--captions", captions, "--out", str(tmp_path / "run"), *SMALL, *more]


@pytest.fixture(scope="module")
def trained(built, tmp_path_factory):
    """A shell, the words of a short training that it ran, its folder and what it printed; to be read only."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(built[0] / "library", folder / "library")
    shell = Shell(folder / "library")
    given = words(folder, write_captions(folder), "--val-ids", str(folder / "val.txt"))
    return shell, given, folder / "run", shell.json(*given)


def test_a_library_and_captions_become_a_model(trained, tmp_path):
    from wordreel.models.reel.model import Reel
    from wordreel.runtime.store import WeightStore

    shell, given, run, (row,) = trained
    assert row["figures"]["t2v"]["queries"] == 1
    for name in ("log.csv", "log.jsonl", "state.safetensors", "loss.svg", "best/model.json"):
        assert (run / name).is_file()
    exported = shell_export(run, tmp_path / "reel.safetensors")
    assert exported["bytes"] < 20_000_000
    whole, small = (
        Reel(WeightStore(), path) for path in (run / "best/model.safetensors", tmp_path / "reel.safetensors")
    )
    assert small.encode(["bread"])[0].vectors.shape == (6, 384)
    assert small.facts["training"]["recipe"]["name"] == "reel"
    assert len({whole.fingerprint, small.fingerprint, Reel(WeightStore()).fingerprint}) == 3
    learned = [model.encode(["bread"])[0].vectors[0] for model in (whole, small)]
    assert float(learned[0] @ learned[1]) > 0.99
    before = (run / "best/model.safetensors").read_bytes()
    with pytest.raises(TrainingError, match="--overwrite"):
        shell(*given)
    assert (run / "best/model.safetensors").read_bytes() == before
    shell(*given, "--resume")  # complete: nothing is left to do
    assert (run / "best/model.safetensors").read_bytes() == before
    shell_export(run, tmp_path / "reel.safetensors", code=2)  # --overwrite would
    shell_export(run, tmp_path / "reel.safetensors", "--overwrite")


def shell_export(run, out, *more, code=0):
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    result = CliRunner().invoke(app, ["export", str(run), "--out", str(out), "--json", *more])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if not code else None


def test_a_library_uses_the_run_and_a_student_learns_from_it(shell, trained, tmp_path, captions):
    run = trained[2]
    used = shell.json("use", str(run))
    assert used["embedded"] > 0
    assert used["fingerprint"] in [row["fingerprint"] for row in shell.json("use")]
    assert shell.json("search", "bread")
    shell("use", "reel")
    shutil.copytree(run, tmp_path / "run")
    shell(*words(tmp_path, captions), "--overwrite", "--set", f'teach.teachers=["{run}"]')
    recipe = json.loads((tmp_path / "run/best/model.json").read_text())["training"]["recipe"]
    assert (recipe["teach"]["kind"], len(recipe["teach"]["teachers"])) == ("kl", 1)


def test_packed_data_trains_the_same_way(shell, tmp_path, captions):
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    pack = tmp_path / "data.pack"
    given = ["train", "default", "--captions", captions, "--val-ids", str(tmp_path / "val.txt")]
    assert "MB" in shell(*given, "--pack", str(pack))
    shell(*given, "--pack", str(pack), "--out", str(tmp_path / "x"), code=2)
    args = ["train", "default", "--packed", str(pack), "--out", str(tmp_path / "run"), *SMALL, "--seed", "3"]
    done = CliRunner().invoke(app, [*args, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["figures"]["t2v"]["queries"] == 1
    for wrong in (["--captions", captions], ["--share", "2"], ["--split", "train"], ["--kind", "ce"]):
        assert CliRunner().invoke(app, [*args, *wrong]).exit_code == 2


@pytest.mark.parametrize(
    "wrong",
    [
        ["--resume", "--overwrite"],
        ["--kind", "ce"],
        ["--data", "somewhere"],
        ["--share", "0"],
    ],
)
def test_options_without_effect_are_refused(shell, tmp_path, captions, wrong):
    shell(*words(tmp_path, captions), *wrong, code=2)
    assert not (tmp_path / "run").exists()


def test_it_needs_data_and_a_folder(shell, tmp_path, captions):
    from typer.testing import CliRunner

    from wordreel.cli.app import app

    assert CliRunner().invoke(app, ["train", "default", "--out", str(tmp_path / "run")]).exit_code == 2
    shell("train", "default", "--captions", captions, code=2)


def test_values_are_checked(shell, tmp_path, captions):
    given = words(tmp_path, captions)
    with pytest.raises(TrainingError, match="did you mean teachers"):
        shell(*given, "--set", "teach.teacherz=2")
    with pytest.raises(TrainingError, match=r"optimiser\.rate is now optimiser\.lr"):
        shell(*given, "--set", "optimiser.rate=2")
    with pytest.raises(TrainingError, match=r"expert_dropout_spares names appearance"):
        shell(*given, "--set", 'model.experts=["ocr"]')
    with pytest.raises(TrainingError, match="info-nce"):
        shell(*given, "--set", "loss.kind=max-margin")
    with pytest.raises(TrainingError, match="encoded once"):
        shell(*given, "--set", "model.text.frozen=true")
    assert not (tmp_path / "run").exists()


def test_ctrl_c_saves_the_state_and_resume_continues(shell, tmp_path, captions):
    given = words(tmp_path, captions, "--set", "run.epochs=1000000", "-L", str(shell.library))
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    given.remove("--epochs")
    given.remove("1")
    child = subprocess.Popen(
        [sys.executable, "-c", "from wordreel.cli import main; main()", *given],
        env=env, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip  # the tests may run in the background, where Ctrl-C is ignored
    log = tmp_path / "run" / "log.csv"
    until = time.monotonic() + 120
    while not log.exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=300)
    assert child.returncode == 130, said
    assert "--resume continues from there" in said
    from wordreel.lab.training.state import read_facts

    assert read_facts(tmp_path / "run")["step"] >= 1
