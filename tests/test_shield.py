"""What the user has installed does not reach the tests, nor the processes that they start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shield import Shield

from wordreel.runtime.store import WeightStore, default_root

SETTINGS = {
    "WORDREEL_LIBRARY": "/films",
    "WORDREEL_INDEX_PASSWORD": "secret",
    "HF_TOKEN": "secret",
}


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A user with a model and one file of weights in the store, and settings of their own."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WORDREEL_WEIGHTS")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    weights = tmp_path / ".cache" / "wordreel" / "weights"
    (weights / "backbones" / "clip-vit-b-32").mkdir(parents=True)
    (weights / "minilm").mkdir()
    (weights / "minilm" / "model.safetensors").write_bytes(b"network")
    return tmp_path


def test_a_model_in_the_users_store_is_not_seen(user):
    before = dict(os.environ)
    shield = Shield()
    try:
        store = WeightStore()
        assert not (store.root / "backbones").exists()
        assert (store.root / "minilm" / "model.safetensors").read_bytes() == b"network"
        assert not Path.home().is_relative_to(user)
        assert not set(SETTINGS) & set(os.environ)
        command = "import json, os; print(json.dumps(dict(os.environ)))"
        output = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True).stdout
        given = json.loads(output)
        assert str(user) not in {given["HOME"], given["HF_HOME"], given["WORDREEL_WEIGHTS"]}
        assert given["WORDREEL_WEIGHTS"] == str(default_root())
    finally:
        shield.lower()
    assert dict(os.environ) == before
    assert not shield.home.exists()
    assert (user / ".cache" / "wordreel" / "weights" / "minilm" / "model.safetensors").exists()


def test_this_run_is_shielded():
    assert default_root().parent == Path.home()
    assert Path.home().name.startswith("wordreel-home-")
