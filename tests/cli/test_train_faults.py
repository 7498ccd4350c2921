"""`wordreel train` as a person meets it when something is not as it should be."""

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from tests.fakes import Colour, FakeFence, write_media  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from wordreel.catalogue.store import LibraryStore  # noqa: E402
from wordreel.cli.app import app  # noqa: E402
from wordreel.errors import TrainingError  # noqa: E402
from wordreel.ingest.add import add  # noqa: E402

OWN = """
[model]
kind = "ce"
dim = 8
[model.text]
words = "vectors"
dim = 3
pool = "mean"
source = "word2vec:{folder}/words.txt"
[model.expert.colour]
dim = 4
[model.expert.smell]
dim = 4
[run]
epochs = 2
batch = 2
"""


@pytest.fixture
def arguments(tmp_path):
    """The arguments of every training here, without `--out` and validation."""
    for seed in range(6):
        write_media(tmp_path / "media" / f"film{seed}.mp4", seconds=12.0 + 5 * seed, seed=seed)
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        add(store, [tmp_path / "media"], [Colour()], FakeFence())
    (tmp_path / "words.txt").write_text("dog 1 0 0\ncat 0 1 0\nruns 0 0 1\n")
    (tmp_path / "own.toml").write_text(OWN.format(folder=tmp_path))
    captions = {
        "train": {f"film{n}": ["a dog runs", "a cat"] for n in range(4)},
        "val": {"film4": ["a dog"], "film5": ["a cat"]},
    }
    (tmp_path / "captions.json").write_text(json.dumps(captions))
    return ["train", "library", f"{tmp_path}/own.toml", "-L", f"{tmp_path}/library", "--captions",
            f"{tmp_path}/captions.json", "--split", "train", "--device", "cpu"]  # fmt: skip


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_an_earlier_run_is_not_lost_by_mistake(arguments, tmp_path):
    out = ("--out", tmp_path / "run")
    assert run(*arguments, *out).exit_code == 0
    before = (tmp_path / "run" / "best" / "model.safetensors").read_bytes()
    with pytest.raises(TrainingError, match="continue it with --resume, replace it with --overwrite"):
        run(*arguments, *out, "--set", "loss.margin=0.1")
    assert (tmp_path / "run" / "best" / "model.safetensors").read_bytes() == before
    assert run(*arguments, *out, "--resume").exit_code == 0
    assert run(*arguments, *out, "--set", "loss.margin=0.1", "--overwrite").exit_code == 0
    assert (tmp_path / "run" / "best" / "model.safetensors").read_bytes() != before


def test_what_is_printed_before_and_while_training(arguments, tmp_path):
    done = run(*arguments, "--val-split", "val", "--out", tmp_path / "run", "--json")
    assert json.loads(done.stdout)[0]["epoch"] in (1, 2)
    lines = done.stderr.splitlines()
    assert "validation: 2 videos, 2 captions" in lines[0]
    assert lines[1] == "note: no video has features of smell; training without"
    assert [line.split(" · ")[0] for line in lines[2:]] == ["epoch 1/2", "epoch 2/2"]
    assert all("R@geo" in line for line in lines[2:])
    both = run(*arguments, "--val-split", "train", "--out", tmp_path / "same").stderr
    assert "note: 4 validation videos are also training videos" in both


@pytest.mark.parametrize(("more", "said"), [
    (("--share", "0"), "between 0 and 1000"),
    (("--share", "nan"), "between 0 and 1000"),
    (("--seed", "-1"), "a whole number of at least 0"),
    (("--workers", "2"), "--workers goes with --on"),
    (("--pack", "pack"), "--out DIR, or --pack FILE"),
])  # fmt: skip
def test_options_that_make_no_sense(arguments, tmp_path, more, said):
    done = run(*arguments, *more, "--out", tmp_path / "run")
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "run").exists()


def test_options_of_libraries_do_not_go_with_a_tree(tmp_path):
    done = run(
        "train", "features", "ce-msvd", "--data", tmp_path, "--ids", "x.txt", "--out", tmp_path / "run"
    )
    assert done.exit_code == 2
    assert "--ids" in done.output


def test_a_library_without_captions_asks_for_them(arguments, tmp_path):
    with pytest.raises(TrainingError, match="--captions FILE"):
        run("train", "library", arguments[2], "-L", f"{tmp_path}/library", "--out", tmp_path / "run")


def test_an_interrupt_says_how_to_go_on(arguments, tmp_path, monkeypatch):
    from wordreel.cli.lab import train_run
    from wordreel.lab.training.run_lock import TrainingInterrupted

    def stopped(*args, **kwargs):
        raise TrainingInterrupted("stopped after step 3 of 9")

    monkeypatch.setattr(train_run, "train", stopped)
    done = run(*arguments, "--out", tmp_path / "run")
    assert done.exit_code == 130
    assert "stopped after step 3 of 9; the same command with --resume continues from there" in done.stderr


WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from wordreel.cli import main
sys.argv = ["wordreel", *sys.argv[1:]]
main()
"""


def test_without_torch_one_line_says_what_to_install(tmp_path):
    command = ["train", "features", "ce-msvd", "--data", str(tmp_path), "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == "wordreel: training needs PyTorch: pip install 'wordreel[train]'\n"


@pytest.mark.slow
def test_training_in_two_processes(arguments, tmp_path):
    """What one of torchrun's worlds gives is tested with `training.distributed`; here it is reached."""
    more = ("--batch", "4", "--on", "local", "--workers", "2", "--json")
    done = run(*arguments, *more, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["best"] == str(tmp_path / "run" / "best")
    assert "epoch 2" in done.stderr
    assert (tmp_path / "run" / "best" / "model.safetensors").exists()
