"""Training on a GPU in half precision, and two processes on one GPU. Needs a GPU."""

import math

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from safetensors.torch import load_file  # noqa: E402
from tests.lab.training.toys import toy_data, toy_recipe  # noqa: E402
from tests.lab.training.worlds import together  # noqa: E402

from wordreel.lab.training.loop import train  # noqa: E402

SHARED = """
import sys
import torch
from tests.lab.training.toys import toy_data, toy_recipe
from wordreel.lab.training.loop import train

torch.distributed.init_process_group("gloo")  # nccl wants a GPU for each process
recipe = toy_recipe("mmt", epochs=3, batch=6)
result = train(recipe, toy_data(recipe.model), sys.argv[1], device="cuda")
print(result.history[-1]["loss"], flush=True)
torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["ce", "moee", "mmt"])
def test_half_precision_learns_as_float32_does(tmp_path, kind, precision):
    ends = {}
    for name in ("float32", precision):
        recipe = toy_recipe(kind, epochs=30, batch=6, precision=name)
        result = train(recipe, toy_data(recipe.model), tmp_path / name, device="cuda")
        losses = [entry["loss"] for entry in result.history]
        assert losses[-1] < losses[0] / 2
        ends[name] = losses[-1]
        weights = load_file(result.best / "model.safetensors")
        assert all(torch.isfinite(tensor).all() for tensor in weights.values())
    assert math.isclose(ends["float32"], ends[precision], rel_tol=0.5, abs_tol=0.02)


@pytest.mark.parametrize(
    ("precision", "captured"), [("float32", False), ("float16", False), ("float32", True)]
)
def test_a_stopped_run_goes_on(tmp_path, precision, captured):
    recipe = toy_recipe("ce", epochs=4, batch=6, precision=precision, compile=captured)
    whole = train(recipe, toy_data(recipe.model), tmp_path / "whole", device="cuda")

    def stop(entry):
        if entry["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, toy_data(recipe.model), tmp_path / "cut", device="cuda", on_epoch=stop, save_steps=1)
    again = train(recipe, toy_data(recipe.model), tmp_path / "cut", device="cuda", resume=True)
    assert len(again.history) == len(whole.history)
    assert again.history[-1]["loss"] == pytest.approx(whole.history[-1]["loss"], rel=1e-3)


def test_two_processes_share_a_gpu(tmp_path):
    codes, outputs = together(SHARED, argument=str(tmp_path), own_device=False)
    assert codes == [0, 0], outputs
    assert outputs[0][0].split()[-1] == outputs[1][0].split()[-1]
    assert (tmp_path / "best" / "model.safetensors").is_file()
