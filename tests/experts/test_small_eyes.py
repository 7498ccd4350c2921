"""The small eyes: their head against the formula, and files that are not theirs."""

import math

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.experts.heads import random_head

from wordreel.errors import WeightsCorrupt
from wordreel.experts import appearance
from wordreel.experts.small_eyes import SmallEyes, digest, head_network, read_head
from wordreel.runtime.sessions import Network


def slow_head(x, w1, b1, w2, b2, skip):
    """One row at a time, with the error function of the standard library."""
    hidden = w1.astype(np.float64) @ x + b1
    gelu = np.array([h * (1 + math.erf(h / math.sqrt(2))) / 2 for h in hidden])
    return skip @ x + w2 @ gelu + b2


def test_the_head_is_the_formula():
    head = random_head(hidden=24)
    features = np.random.default_rng(1).uniform(0, 2, (5, 1280)).astype(np.float32)
    arrays = [head[name] for name in ("w1", "b1", "w2", "b2", "skip")]
    found = Network(head_network(*arrays))(features=features)["embeddings"]
    np.testing.assert_allclose(found, [slow_head(x, *arrays) for x in features], atol=1e-3)


def test_they_look_with_the_network_that_ships(tmp_path):
    save_file(random_head(hidden=8, dtype=np.float16), str(tmp_path / "head"))
    pictures = np.random.default_rng(0).integers(0, 255, (3, 224, 224, 3), np.uint8)
    features = appearance.open_network()(images=pictures)["features"]
    arrays = read_head(tmp_path / "head")
    np.testing.assert_allclose(
        SmallEyes(tmp_path / "head")(pictures), [slow_head(x, *arrays) for x in features], atol=2e-3
    )


@pytest.mark.parametrize("damage", ["missing", "short", "lacking", "shape"])
def test_damaged_files_are_refused(tmp_path, damage):
    path, head = tmp_path / "head", random_head(hidden=8)
    if damage == "lacking":
        del head["skip"]
    elif damage == "shape":
        head["w2"] = head["w2"].T.copy()
    if damage != "missing":
        save_file(head, str(path))
    if damage == "short":
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WeightsCorrupt, match=r"small eyes.*install wordreel again"):
        read_head(path)


def test_the_digest_is_of_both_networks(tmp_path):
    save_file(random_head(hidden=8), str(tmp_path / "one"))
    save_file(random_head(hidden=8, seed=1), str(tmp_path / "two"))
    assert digest(tmp_path / "one") != digest(tmp_path / "two")
    assert digest(tmp_path / "one").startswith(appearance.SHA256)
    with pytest.raises(WeightsCorrupt):
        digest(tmp_path / "none")
