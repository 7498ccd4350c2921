"""Golden outputs of the models: with the same fingerprint, a model gives the same numbers for ever.

`WORDREEL_UPDATE_SNAPSHOTS=1 pytest tests/models/test_golden.py` writes them anew, after a model and with it
its fingerprint has changed.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from wordreel.errors import WeightsMissing
from wordreel.lab.models.registry import reel
from wordreel.models.bridge import Bridge
from wordreel.models.reel.model import Reel
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Track

GOLDEN = Path(__file__).parent / "golden_models.json"
TEXTS = ["a red dog runs", "two people play chess", "the blue sea"]
CLIPS = [Clip("x", 0.0, 8.0, whole=True), Clip("x", 2.0, 5.0)]
NUMBERS = 6  # of each row
DIMS = {expert.name: expert.dim for expert in reel().experts} | {"speech": 384, "ocr": 384}


def tracks(model):
    """The same random tracks of every expert that the model reads, each row as long as a real one."""
    seconds = np.arange(8.0)
    times = np.stack([seconds, seconds + 1], axis=1)
    made = {}
    for number, name in enumerate(sorted(model.track_experts)):
        rows = np.random.default_rng(number).random((8, DIMS[name])).astype(np.float32)
        made[name] = Track(rows / np.linalg.norm(rows, axis=1, keepdims=True), times)
    return made


def outputs(model):
    vectors, available = model.embed(tracks(model), CLIPS)
    queries = model.encode(TEXTS)
    return {
        "fingerprint": model.fingerprint,
        "clips": vectors[:, :, :NUMBERS].round(5).tolist(),
        "available": available.tolist(),
        "queries": [query.vectors[:, :NUMBERS].round(5).tolist() for query in queries],
        "weights": [query.weights.round(5).tolist() for query in queries],
    }


@pytest.mark.parametrize("kind", [Reel, Bridge])
def test_golden(kind):
    name = kind.name
    try:
        found = outputs(kind(WeightStore()))
    except WeightsMissing as error:
        pytest.skip(str(error))
    golden = json.loads(GOLDEN.read_text(encoding="utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("WORDREEL_UPDATE_SNAPSHOTS"):
        GOLDEN.write_text(json.dumps({**golden, name: found}, indent=None, sort_keys=True) + "\n")
        return
    if found["fingerprint"] != golden[name]["fingerprint"]:
        pytest.skip(f"the model {name} has changed: write its golden outputs anew")
    assert found["available"] == golden[name]["available"]
    for part in ("clips", "queries", "weights"):
        np.testing.assert_allclose(found[part], golden[name][part], atol=2e-3)
        assert np.isfinite(found[part]).all()
        assert np.any(golden[name][part])
