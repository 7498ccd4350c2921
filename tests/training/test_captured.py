"""Steps replayed as one CUDA graph follow the path of steps taken one by one. Needs a GPU."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from tests.training.toys import material, recipe  # noqa: E402

from wordreel.training.distributed import World  # noqa: E402
from wordreel.training.session import Session  # noqa: E402
from wordreel.training.settings import OptimiserSettings  # noqa: E402


@pytest.mark.parametrize("optimiser", ["adam", "radam", "ranger"])
@pytest.mark.parametrize("kind", ["ce", "mmt"])
def test_a_captured_run_is_a_run(kind, optimiser):
    made = recipe(kind, epochs=12, batch=6, drop_last=True)
    made = replace(made, optimiser=OptimiserSettings(optimiser, 5e-3))
    if kind == "mmt":
        made = replace(made, model=replace(made.model, dropout=0.0))
    paths = {}
    for captured in (False, True):
        given = replace(made, run=replace(made.run, compile=captured))
        session = Session(given, material(made.model), torch.device("cuda"), World())
        losses, number = [], 0
        for epoch in range(made.run.epochs):
            for videos, captions in session.order.epoch(epoch):
                losses.append(float(session.step(videos, captions, number, 1.0)))
                number += 1
        assert (session.stepper._graph is not None) == captured
        paths[captured] = losses
    assert paths[False][-1] < paths[False][0]
    first = 4 if kind == "mmt" else len(losses)  # rows of long videos are drawn at random
    assert paths[True][:first] == pytest.approx(paths[False][:first], rel=0.05, abs=1e-3)
    assert paths[True][-1] == pytest.approx(paths[False][-1], rel=0.5, abs=0.05)
