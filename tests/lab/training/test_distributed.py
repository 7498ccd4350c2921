"""Two processes on one machine, talking over gloo. `test_kill_matrix` stops and resumes some."""

import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.worlds import together  # noqa: E402

GATHERED = """
import torch
from torch import nn
from wordreel.lab.models.batch import QueryEmbeddings, VideoEmbeddings, similarity
from wordreel.lab.training.distributed import init_world
from wordreel.lab.training.losses import max_margin

torch.manual_seed(0)
a, b = nn.Linear(5, 4, dtype=torch.float64), nn.Linear(6, 4, dtype=torch.float64)
x, y = torch.randn(8, 5, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
weights, there = torch.rand(8, 2, dtype=torch.float64), torch.rand(8, 2) < 0.8

def loss(videos, queries, w, t, gather):
    videos, t, queries, w = gather((videos.unflatten(1, (2, 2)), t, queries.unflatten(1, (2, 2)), w))
    return max_margin(similarity(QueryEmbeddings(queries, w), VideoEmbeddings(videos, t)), margin=0.3)

whole = loss(a(x), b(y), weights, there, lambda tensors: tensors)
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
from tests.lab.training.toys import toy_data, toy_recipe
from wordreel.lab.training.loop import train

recipe = toy_recipe("mmt", epochs=3, batch=6)
result = train(recipe, toy_data(recipe.model), sys.argv[1], device="cpu")
print("epochs", len(result.history), result.history[-1]["loss"], flush=True)
assert not torch.distributed.is_initialized()  # what was joined has been left
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Both scripts, one after the other: the folder, and the lines of each rank."""
    folder = tmp_path_factory.mktemp("world")
    codes, outputs = together(GATHERED, TRAINED, argument=str(folder))
    assert codes == [0, 0] * 2, outputs
    return folder, [out.splitlines() for out, _ in outputs]


def test_the_gathered_gradient_is_that_of_one_process_with_the_whole_batch(ran):
    assert [lines[0] for lines in ran[1]] == ["the same"] * 2


def test_two_processes_train_one_model(ran):
    folder, outputs = ran
    first, second = (lines[1].split() for lines in outputs)
    assert first[1] == second[1] == "3"
    assert first[2] == second[2]  # the loss of all pairs is everybody's
    assert (folder / "best" / "model.safetensors").is_file()
