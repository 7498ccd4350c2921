"""`wordreel use` with a folder of ONNX files: from the command to an answer, and refusals."""

import json
import shutil

import pytest
from tests.tiny_backbone import write_json, write_onnx
from typer.testing import CliRunner

from wordreel.backbones import installed as backbones
from wordreel.backbones.installed import InstallPlan
from wordreel.cli.app import app
from wordreel.cli.setup import use as use_module
from wordreel.errors import WeightsError, WeightsMissing
from wordreel.runtime.store import WeightStore, default_root

PLAN = InstallPlan("clip-vit-b-32", "somebody/clip", (("onnx/vision_model.onnx", 605_000_000),), "MIT")


@pytest.fixture(autouse=True)
def weights(tmp_path, monkeypatch):
    """A weight store of its own, with the experts' weights of the machine and no backbone."""
    root = tmp_path / "weights"
    root.mkdir()
    for folder in default_root().iterdir():
        if folder.name != "backbones":
            (root / folder.name).symlink_to(folder)
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(root))
    return root


def test_from_the_command_to_an_answer(shell, tmp_path, media):
    folder = write_onnx(tmp_path / "clip-tiny")
    said = shell("use", str(folder))
    assert said.startswith("clip-tiny (")
    assert "is in use" in said
    assert list(backbones.installed(WeightStore())) == ["clip-tiny"]
    hits = shell.json("search", "the red cat")
    assert {hit["kind"] for hit in hits} == {"video"}
    assert all("seen" in [reason["expert"] for reason in hit["why"]] for hit in hits)
    assert {reason["what"] for hit in hits for reason in hit["why"] if reason["expert"] == "seen"} == {
        "the best frame"
    }
    (used,) = [line for line in shell("use").splitlines() if line.endswith("in use")]
    assert used.startswith("clip-tiny")
    shutil.rmtree(folder)  # the store has its own copy
    assert shell.json("search", "--like", str(media / "station.mp4"))[0]["why"][0]["expert"] == "seen"
    captions = tmp_path / "captions.txt"
    captions.write_text("a red cat\na blue dog\n")
    assert len(shell.json("caption", str(media / "station.mp4"), "--from", str(captions))) == 2
    assert shell("use", "joint").startswith("joint (")
    assert shell("use", "clip-tiny").endswith("is in use; 0 clips were embedded.\n")


def test_another_precision(shell, tmp_path):
    folder = write_onnx(tmp_path / "tiny", suffix="_int8")
    used = shell.json("use", str(folder), "--precision", "int8")
    ((name, known),) = backbones.installed(WeightStore()).items()
    assert name == used["name"] == "tiny-int8"
    assert known.precision == "int8"
    assert shell.json("search", "blue dog")


def test_a_name_of_an_expert_is_refused(shell, tmp_path):
    with pytest.raises(WeightsError, match="cannot be called 'clip', as an expert is"):
        shell("use", str(write_onnx(tmp_path / "clip")))
    assert backbones.installed(WeightStore()) == {}


def listed(*words):
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return {row["name"]: row for row in json.loads(result.stdout)}


def test_models_and_experts_list_it(shell, tmp_path):
    before = listed("models")
    assert not before["clip-vit-b-32"]["installed"]
    assert before["clip-vit-b-32"]["megabytes"] > 100
    assert before["clip-vit-b-32"]["licence"]
    assert before["clip-vit-b-32"]["speed"] in ("fast", "medium", "slow")
    shell("use", str(write_onnx(tmp_path / "clip-tiny")))
    assert listed("models")["clip-tiny"]["installed"]
    row = listed("experts")["clip-tiny"]
    assert row["installed"]
    assert row["dimension"] == 16


def damaged(folder, how):
    write_onnx(folder, text_dim=8 if how == "other sizes" else 16)
    if how == "truncated":
        path = folder / "onnx" / "text_model.onnx"
        path.write_bytes(path.read_bytes()[:-1000])
    elif how == "another preparation":
        write_json(folder / "preprocessor_config.json", {"size": {"longest_edge": 32}})
    return folder


@pytest.mark.parametrize("how", ["truncated", "another preparation", "other sizes"])
def test_bad_files_are_refused_before_anything_changes(shell, tmp_path, how):
    folder = damaged(tmp_path / "bad", how)
    before = shell.json("use", "--list")
    with pytest.raises(WeightsError) as refused:
        shell("use", str(folder))
    assert len(refused.value.message) > 20
    assert backbones.installed(WeightStore()) == {}
    assert shell.json("use", "--list") == before
    assert shell.json("search", "bakery")[0]["path"].endswith("bakery.mp4")


def test_without_a_terminal_a_download_needs_yes(shell, monkeypatch):
    monkeypatch.setattr(backbones, "plan", lambda store, source, precision="fp32": PLAN)
    monkeypatch.setattr(backbones, "install", lambda *_: pytest.fail("it was downloaded"))
    with pytest.raises(WeightsMissing, match=r"without your consent.*use clip-vit-b-32 --yes"):
        shell("use", "clip-vit-b-32")


def test_what_is_downloaded_is_said(capsys, monkeypatch):
    assert use_module.confirm(PLAN, yes=True)
    said = capsys.readouterr().err
    for part in ("clip-vit-b-32", "605.0 MB", "onnx/vision_model.onnx", "somebody/clip", "MIT"):
        assert part in said

    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setattr(use_module.sys, "stdin", Terminal())
    for answer in (True, False):
        monkeypatch.setattr(use_module.typer, "confirm", lambda *_, answer=answer, **__: answer)
        assert use_module.confirm(PLAN, yes=False) is answer
