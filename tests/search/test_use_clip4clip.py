"""`wordreel use CHECKPOINT` of a CLIP4Clip or CLIP2Video: exported once, then run without torch."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import Colour
from tests.lab.models.clip.tiny import shake
from tests.media_files import video
from tests.tiny_backbone import write_clip
from typer.testing import CliRunner

from wordreel.backbones import installed as backbones
from wordreel.catalogue.store import LibraryStore
from wordreel.cli.app import app
from wordreel.errors import WeightsError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.media import Fence
from wordreel.models import model_store
from wordreel.models.laboratory import ConversionOptions
from wordreel.models.zero_shot import CONSTANT, GAIN, LEVELS

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    films = tmp_path_factory.mktemp("films")
    for seed in range(3):
        video(films / f"film{seed}.mp4", seconds=4.0, seed=seed, sound=False)
    folder = tmp_path_factory.mktemp("filled") / "library"
    with LibraryStore.create_or_open(folder) as store, Fence() as fence:
        assert len(add(store, [films], [Colour()], fence).added) == 3
    return folder


@pytest.fixture
def library(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(backbones, "FOLDER", str(tmp_path / "backbones"))  # not the user's
    shutil.copytree(filled, tmp_path / "library")
    return Library(tmp_path / "library")


def heads_of_64(clip):
    return replace(clip, vision=replace(clip.vision, heads=1), text=replace(clip.text, heads=1))


def published(tmp_path, head):
    """A checkpoint in the published layout with a tokenizer beside it, and its module."""
    from wordreel.lab.checkpoints.clip import read_clip
    from wordreel.lab.checkpoints.video_text import load_published, save_published
    from wordreel.lab.models.build import build
    from wordreel.lab.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig

    clip = write_clip(tmp_path / "clip")
    folder = tmp_path / "ckpt_films"
    folder.mkdir()
    # Published checkpoints have heads of 64 numbers; their number is not in the file.
    backbone = heads_of_64(read_clip(clip)[0])
    others = {"clip2video": Clip2VideoConfig(backbone, layers=1), "ts2net": TS2NetConfig(backbone, patches=2)}
    model = build(others.get(head) or Clip4ClipConfig(backbone, head, layers=1))
    shake(model)
    save_published(folder / "pytorch_model.bin.3", model)
    shutil.copyfile(clip / "tokenizer.json", folder / "tokenizer.json")
    return folder / "pytorch_model.bin.3", load_published(folder / "pytorch_model.bin.3")


@pytest.mark.parametrize("head", ["mean", "lstm", "transformer", "clip2video"])
def test_a_published_checkpoint_answers_as_its_module(library, tmp_path, monkeypatch, head):
    from wordreel.lab.models.clip.video_text import CaptionBatch

    path, module = published(tmp_path, head)
    used = library.use(str(path))
    with monkeypatch.context() as without_torch:
        without_torch.setitem(sys.modules, "torch", None)
        hits = library.search("the red cat", norm="none")
        (query,) = library.model.encode(["the red cat"])
    assert (used.name, model_store.in_use(library.store)) == ("ckpt_films", "ckpt_films")
    assert len({hit.content for hit in hits}) == 3
    backbone = backbones.open_backbone(library.weights, "ckpt_films")
    ids, mask = (torch.from_numpy(part) for part in backbone.tokenizer.encode(["the red cat"]))
    for clip in library.store.clips():
        track = library.store.track(clip.content, "ckpt_films")
        inside = (track.times[:, 0] < clip.end) & (track.times[:, 1] > clip.start)
        rows = torch.from_numpy(track.values[inside])[None]
        with torch.no_grad():
            encoded = module.encode_frames(rows, torch.ones(rows.shape[:2], dtype=torch.bool))
            logit = module.logits(module.encode_captions(CaptionBatch(ids, mask)), encoded)
            cosine = float(logit / module.clip.scale())
        vectors, available = library.model.embed({"ckpt_films": track}, [clip])
        assert available[0, 0]
        expected = GAIN * (cosine - LEVELS["clip"])
        assert float(query.vectors[0] @ vectors[0, 0]) == pytest.approx(expected, abs=1e-4)
        assert np.linalg.norm(vectors[0, 0]) == pytest.approx(1, abs=1e-5)
        assert vectors[0, 0, backbone.config.vector_dim] == pytest.approx(CONSTANT)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("tight", "tight head reads every query together with every video"),
        ("ts2net", "a TS2-Net weighs the frames of a video by the query"),
    ],
)
def test_what_has_no_vector_is_refused_and_nothing_changes(library, tmp_path, head, reason):
    path, _ = published(tmp_path, head)
    with pytest.raises(WeightsError, match=reason):
        library.use(str(path))
    assert backbones.installed(library.weights) == {}
    assert model_store.in_use(library.store) == "joint"


def test_damaged_files_are_refused_and_options_of_others_too(library, tmp_path):
    path, _ = published(tmp_path, "lstm")
    arrays = torch.load(path, weights_only=True)
    arrays.pop("clip.visual.ln_post.bias")
    torch.save(arrays, path.parent / "lacking.bin")
    with pytest.raises(WeightsError, match=r"it has no clip\.visual\.ln_post\.bias"):
        library.use(str(path.parent / "lacking.bin"))
    (tmp_path / "cut.bin").write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(WeightsError, match="damaged"):
        library.use(str(tmp_path / "cut.bin"))
    with pytest.raises(WeightsError, match="is a backbone"):
        library.use(str(path), conversion=ConversionOptions(name="mine"))
    assert backbones.installed(library.weights) == {}
    assert model_store.in_use(library.store) == "joint"


def test_a_training_is_used_by_command(library, tmp_path):
    from wordreel.lab.models import checkpoint

    path, module = published(tmp_path, "transformer")
    checkpoint.save(tmp_path / "runs" / "films" / "best", module, "films")
    shutil.copyfile(path.parent / "tokenizer.json", tmp_path / "runs" / "films" / "best" / "tokenizer.json")
    where = ["--library", str(tmp_path / "library")]
    result = CliRunner().invoke(app, ["use", str(tmp_path / "runs" / "films"), *where])
    assert result.exit_code == 0, result.output
    assert "films (" in result.stdout
    found = CliRunner().invoke(app, ["search", "a blue dog", "--norm", "none", *where])
    assert found.exit_code == 0, found.output
    assert "film" in found.stdout
