"""Golden outputs of the default model: with the same fingerprint it gives the same numbers for ever.

`WORDREEL_UPDATE_SNAPSHOTS=1 pytest tests/models/test_golden.py` writes them anew, after a model and with it
its fingerprint has changed.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from wordreel.errors import WeightsMissing
from wordreel.models.joint.model import Joint
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Track, Words

GOLDEN = Path(__file__).parent / "golden_joint.json"
TEXTS = ["a red dog runs", "two people play chess", "the blue sea"]
CLIPS = [Clip("x", 0.0, 8.0, whole=True), Clip("x", 2.0, 5.0)]
NUMBERS = 6  # of each row
LINES = ["Hello and welcome", "today we cook rice", "with onions and garlic", "EXIT"]


def tracks():
    """The same random tracks of every expert that the model reads, each row as long as a real one."""
    seconds = np.arange(8.0)
    times = np.stack([seconds, seconds + 1], axis=1)
    made = {}
    for number, (name, dim) in enumerate({"clip": 512, "sound": 1024}.items()):
        rows = np.random.default_rng(number).random((8, dim)).astype(np.float32)
        made[name] = Track(rows / np.linalg.norm(rows, axis=1, keepdims=True), times)
    said = Track.of_lines([Words(text, 2.0 * n, 2.0 * n + 1.5) for n, text in enumerate(LINES)])
    return {**made, "speech": said, "ocr": said}


def outputs(model):
    vectors, available = model.embed(tracks(), CLIPS)
    queries = model.encode(TEXTS)
    return {
        "fingerprint": model.fingerprint,
        "clips": vectors[:, :, :NUMBERS].round(5).tolist(),
        "available": available.tolist(),
        "queries": [query.vectors[:, :NUMBERS].round(5).tolist() for query in queries],
        "weights": [query.weights.round(5).tolist() for query in queries],
    }


def test_golden():
    try:
        found = outputs(Joint(WeightStore()))
    except WeightsMissing as error:
        pytest.skip(str(error))
    if os.environ.get("WORDREEL_UPDATE_SNAPSHOTS"):
        GOLDEN.write_text(json.dumps(found, indent=None, sort_keys=True) + "\n")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert found["fingerprint"] == golden["fingerprint"], (
        "the model has changed: write its golden outputs anew"
    )
    assert found["available"] == golden["available"]
    for part in ("clips", "queries", "weights"):
        np.testing.assert_allclose(found[part], golden[part], atol=5e-3)
        assert np.isfinite(found[part]).all()
        assert np.any(golden[part])
