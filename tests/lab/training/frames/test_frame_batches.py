"""Training from raw video: the same loop, state and figures, on a CLIP of a few numbers."""

import json

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402
from tests.lab.training.frames.clips import COLOURS, tiny_backbone, write_videos  # noqa: E402
from tests.lab.training.worlds import together  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.loop import train  # noqa: E402
from wordreel.lab.training.open_data import CaptionedVideos, Sources  # noqa: E402
from wordreel.lab.training.session import Session  # noqa: E402
from wordreel.lab.training.training_data import prepare  # noqa: E402

SHORT = [
    "model.max_frames=2",
    "model.max_words=8",
    "run.batch=4",
    "frames.workers=1",
    "run.precision=float32",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_videos(folder / "videos")
    tiny_backbone(folder / "clip")
    return folder


def opened(world, name="clip4clip-mean-msvd", *changes):
    recipe = recipes.load(name, [*SHORT, f"start.backbone={world / 'clip'}", *changes])
    source = CaptionedVideos(captions=str(world / "videos"))
    pairs = Sources([source], [source]).open(recipe)
    return recipe, prepare(recipe, pairs.train, pairs.val)


def test_it_learns_and_says_how_long_the_device_waited(world, tmp_path):
    recipe, data = opened(
        world, "clip4clip-transformer-msvd", "model.layers=1", "run.epochs=8", "optimiser.lr=3e-3",
        "optimiser.backbone_lr=3e-3", "start.frozen_layers=-1", "loss.same_video=leave out",
        "data.captions=one",
    )  # fmt: skip
    result = train(recipe, data, tmp_path, device="cpu")
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    assert result.figures.t2v.queries == 2 * len(COLOURS)
    assert 0 <= result.loading["waiting_share"] <= 1
    assert result.loading["clips_per_second"] > 0
    assert (tmp_path / "best" / "tokenizer.json").is_file()
    facts = json.loads((tmp_path / "best" / "model.json").read_text())
    assert facts["training"]["videos"] == len(COLOURS)


def test_a_stopped_run_ends_with_the_same_bits(world, tmp_path, monkeypatch):
    recipe, data = opened(
        world, "clip4clip-mean-msvd", "run.epochs=2", "optimiser.lr=1e-3", "frames.crop=0.5"
    )
    train(recipe, data, tmp_path / "whole", device="cpu")
    step, taken = Session.step, []

    def counted(self, *given):
        if len(taken) == 4:
            raise KeyboardInterrupt
        taken.append(given[1])
        return step(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "step", counted)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, data, tmp_path / "cut", device="cpu", save_steps=1)
    train(recipe, data, tmp_path / "cut", device="cpu", resume=True)
    one, other = (load_file(tmp_path / name / "last" / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_recipe_of_clip_without_a_clip_says_what_to_name(world, tmp_path):
    _, data = opened(world)
    bare = recipes.load("clip4clip-mean-msvd", [*SHORT, "start.backbone="])
    with pytest.raises(TrainingError, match="fine-tunes a CLIP"):
        train(bare, data, tmp_path, device="cpu")


GATHERED = """
import sys
import torch
from tests.lab.training.frames.test_frame_batches import opened
from pathlib import Path
from wordreel.lab.training.distributed import World, init_world
from wordreel.lab.training.session import Session

recipe, data = opened(Path(sys.argv[1]), "clip4clip-transformer-msvd", "model.layers=1",
                      "start.frozen_layers=-1", "run.seed=3")
def gradients(world):
    session = Session(recipe, data, torch.device("cpu"), world)
    batch = next(session.batches(0, 0))
    loss = session.source.loss(batch)
    loss.backward()
    session.close()
    named = session.module.named_parameters()
    return loss.item(), {name: p.grad.clone() for name, p in named if p.grad is not None}

alone = gradients(World())
with init_world("cpu") as world:
    both = gradients(world)
assert abs(alone[0] - both[0]) < 1e-5, (alone[0], both[0])
assert alone[1].keys() == both[1].keys() and "clip.logit_scale" in both[1]
for name, want in alone[1].items():
    assert torch.allclose(want, both[1][name], atol=1e-5, rtol=1e-3), name
print("the same", flush=True)
"""


def test_two_processes_compute_the_gradient_of_one(world):
    codes, outputs = together(GATHERED, argument=str(world))
    assert codes == [0, 0], outputs
    assert [out for out, _ in outputs] == ["the same\n"] * 2
