"""Compiled steps, replayed as CUDA graphs, follow the path of plain steps. Needs a GPU."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.lab.training.toys import toy_data, toy_recipe  # noqa: E402

from wordreel.lab.training.distributed import World  # noqa: E402
from wordreel.lab.training.session import Session  # noqa: E402
from wordreel.lab.training.settings import OptimiserSettings  # noqa: E402


def walked(recipe, captured):
    """The losses of a run."""
    given = replace(recipe, run=replace(recipe.run, compile=captured))
    session = Session(given, toy_data(recipe.model), torch.device("cuda"), World())
    losses = []
    for epoch in range(recipe.run.epochs):
        for batch in session.batches(epoch, 0):
            losses.append(float(session.step(batch, len(losses), 1.0)))
    return losses


def deterministic(kind):
    """A recipe without chance: no dropout, and no rows left out."""
    recipe = toy_recipe(kind, epochs=12, batch=6, drop_last=True)
    if kind == "mmt":
        model = recipe.model
        experts = tuple(replace(expert, max_tokens=8) for expert in model.experts)
        text = replace(model.text, network=replace(model.text.network, dropout=0.0))
        recipe = replace(recipe, model=replace(model, dropout=0.0, experts=experts, text=text))
    return recipe


@pytest.mark.parametrize("optimiser", ["adam", "radam", "ranger"])
@pytest.mark.parametrize("kind", ["ce", "mmt"])
def test_a_captured_run_is_a_run(kind, optimiser):
    recipe = replace(deterministic(kind), optimiser=OptimiserSettings(optimiser, 5e-3))
    plain, captured = walked(recipe, False), walked(recipe, True)
    assert plain[-1] < plain[0]
    assert captured == pytest.approx(plain, rel=0.02, abs=1e-3)


def test_as_released_can_be_captured():
    recipe = replace(deterministic("ce"), model=replace(deterministic("ce").model, mode="released"))
    assert walked(recipe, True) == pytest.approx(walked(recipe, False), rel=0.02, abs=1e-3)


def test_chance_in_a_captured_run_is_the_seeds():
    recipe = toy_recipe("mmt", epochs=6, batch=6, drop_last=True)
    first, again, other = (
        walked(one, True) for one in (recipe, recipe, replace(recipe, run=replace(recipe.run, seed=1)))
    )
    assert again == pytest.approx(first, rel=1e-3)
    assert other != pytest.approx(first, rel=1e-2)
