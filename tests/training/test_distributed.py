"""Two processes on one machine, talking over gloo."""

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402
from tests.training.worlds import together  # noqa: E402

GATHERED = """
import torch
from torch import nn
from wordreel.models.batch import QueryEmbeddings, VideoEmbeddings, similarity
from wordreel.training.distributed import init_world
from wordreel.training.losses.max_margin import MaxMarginLoss

torch.manual_seed(0)
a, b = nn.Linear(5, 4, dtype=torch.float64), nn.Linear(6, 4, dtype=torch.float64)
x, y = torch.randn(8, 5, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
weights, there = torch.rand(8, 2, dtype=torch.float64), torch.rand(8, 2) < 0.8

def loss(videos, queries, w, t, gather):
    videos = VideoEmbeddings(videos.unflatten(1, (2, 2)), t)
    queries = QueryEmbeddings(queries.unflatten(1, (2, 2)), w)
    return MaxMarginLoss(0.3)(similarity(*reversed(gather(videos, queries))))

whole = loss(a(x), b(y), weights, there, lambda videos, queries: (videos, queries))
want = torch.autograd.grad(whole, [a.weight, b.weight])
with init_world("cpu") as world:
    part = world.shard
    mine = loss(a(part(x)), b(part(y)), part(weights), part(there), world.gather)
    got = torch.autograd.grad(mine, [a.weight, b.weight])
    for one, other in zip(want, got):
        torch.distributed.all_reduce(other)
        assert torch.allclose(one, other / world.size), (one, other / world.size)
    assert torch.allclose(whole, mine)
print("the same", flush=True)
"""


TRAINED = """
import sys
import torch
from tests.training.toys import toy_data, toy_recipe
from wordreel.training.loop import train

recipe = toy_recipe("mmt", epochs=3, batch=6)
result = train(recipe, toy_data(recipe.model), sys.argv[1], device="cpu")
print("epochs", len(result.history), result.history[-1]["loss"], flush=True)
assert not torch.distributed.is_initialized()  # what was joined has been left
"""


STOPPED = """
import os
import sys
from tests.training.toys import toy_data, toy_recipe
from wordreel.training.loop import train
from wordreel.training.feature_session import FeatureSession

most, taken, step = int(sys.argv[2]), 0, FeatureSession.step

def counted(self, *given):
    global taken
    if taken == most:
        os._exit(3)  # as if the power were gone
    taken += 1
    return step(self, *given)

FeatureSession.step = counted
recipe = toy_recipe("mmt", epochs=3, batch=6)
train(recipe, toy_data(recipe.model), sys.argv[1], device="cpu", resume=True, save_steps=2)
"""


def test_the_gathered_gradient_is_that_of_one_process_with_the_whole_batch():
    codes, outputs = together(GATHERED)
    assert codes == [0, 0], outputs
    assert [out for out, _ in outputs] == ["the same\n"] * 2


def test_two_processes_train_one_model(tmp_path):
    codes, outputs = together(TRAINED, str(tmp_path))
    assert codes == [0, 0], outputs
    assert outputs[0][0].split()[1] == outputs[1][0].split()[1] == "3"
    assert outputs[0][0].split()[2] == outputs[1][0].split()[2]  # the loss of all pairs is everybody's
    assert (tmp_path / "best" / "model.safetensors").is_file()


def test_two_stopped_processes_go_on_to_the_same_model(tmp_path):
    codes, outputs = together(STOPPED, str(tmp_path / "whole"), "1000")
    assert codes == [0, 0], outputs
    assert together(STOPPED, str(tmp_path / "cut"), "3")[0] == [3, 3]
    codes, outputs = together(STOPPED, str(tmp_path / "cut"), "1000")
    assert codes == [0, 0], outputs
    one, other = (load_file(tmp_path / name / "last" / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)
