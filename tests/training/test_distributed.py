"""Two processes on one machine, talking over gloo."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

CHILD = """
import sys
import torch
from tests.training.toys import material, recipe
from torch import nn
from wordreel.models.batch import Queries, Videos, similarity
from wordreel.training.distributed import join_world
from wordreel.training.losses.max_margin import MaxMargin
from wordreel.training.loop import train

world = join_world("cpu")
# The gathered gradient is that of one process with the whole batch.
torch.manual_seed(0)
a, b = nn.Linear(5, 4, dtype=torch.float64), nn.Linear(6, 4, dtype=torch.float64)
x, y = torch.randn(8, 5, dtype=torch.float64), torch.randn(8, 6, dtype=torch.float64)
weights, there = torch.rand(8, 2, dtype=torch.float64), torch.rand(8, 2) < 0.8

def loss(videos, queries, w, t, gather):
    shown, asked = Videos(videos.unflatten(1, (2, 2)), t), Queries(queries.unflatten(1, (2, 2)), w)
    if gather:
        shown, asked = world.gather(shown, asked)
    return MaxMargin(0.3)(similarity(asked, shown))

whole = loss(a(x), b(y), weights, there, False)
want = torch.autograd.grad(whole, [a.weight, b.weight])
both = nn.ModuleList([a, b])
part = lambda z: world.part(z)
mine = loss(a(part(x)), b(part(y)), part(weights), part(there), True)
got = torch.autograd.grad(mine, [a.weight, b.weight])
for one, other in zip(want, got):
    torch.distributed.all_reduce(other)
    assert torch.allclose(one, other / world.size), (one, other / world.size)
assert torch.allclose(whole, mine)

made = recipe("mmt", epochs=3, batch=6)
found = train(made, material(made.model), sys.argv[1], device="cpu")
print("epochs", len(found.history), found.history[-1]["loss"], flush=True)
torch.distributed.destroy_process_group()
"""


STOPPED = """
import os
import sys
from tests.training.toys import material, recipe
from wordreel.training.distributed import join_world
from wordreel.training.loop import train
from wordreel.training.session import Session

import torch

join_world("cpu")
most, taken, step = int(sys.argv[2]), 0, Session.step

def counted(self, *given):
    global taken
    if taken == most:
        os._exit(3)  # as if the power were gone
    taken += 1
    return step(self, *given)

Session.step = counted
made = recipe("mmt", epochs=3, batch=6)
train(made, material(made.model), sys.argv[1], device="cpu", resume=True, save_steps=2)
torch.distributed.destroy_process_group()
"""


def together(code: str, *arguments: str) -> tuple[list[int], list[tuple[str, str]]]:
    """Run a script as two processes of one world; their exit codes and what they said."""
    root = Path(__file__).parents[2]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        env = {
            **os.environ,
            "PYTHONPATH": str(root),
            "OMP_NUM_THREADS": "1",
            "WORLD_SIZE": "2",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                cwd=root,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [child.communicate(timeout=120) for child in children]
    return [child.returncode for child in children], said


def test_two_processes_train_one_model(tmp_path):
    codes, said = together(CHILD, str(tmp_path))
    assert codes == [0, 0], said
    assert said[0][0].split()[1] == said[1][0].split()[1] == "3"
    assert said[0][0].split()[2] == said[1][0].split()[2]  # the loss of all pairs is everybody's
    assert (tmp_path / "best" / "model.safetensors").is_file()


def test_two_stopped_processes_go_on_to_the_same_model(tmp_path):
    codes, said = together(STOPPED, str(tmp_path / "whole"), "1000")
    assert codes == [0, 0], said
    assert together(STOPPED, str(tmp_path / "cut"), "3")[0] == [3, 3]
    codes, said = together(STOPPED, str(tmp_path / "cut"), "1000")
    assert codes == [0, 0], said
    one, other = (load_file(tmp_path / name / "last" / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)
