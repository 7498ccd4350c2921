"""A bank four times as large as the memory a process may have."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

ALLOWED = 80 << 20
ROWS, ITEMS = 32_768, 2_560  # 320 MB of float32

# The limit is on what a process holds for itself; pages of a mapped file can be given back at any time.
LIMIT = f"""
import re, resource, sys
from pathlib import Path
import numpy as np
def limit():
    held = int(re.search(r"VmData:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
    most = held + {ALLOWED}
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
"""
FIT = """
from wordreel.hubness import make_method
limit()
path = sys.argv[1]
try:
    np.load(path)
    print("no limit")
except MemoryError:
    state = make_method("dis").fit(np.load(path, mmap_mode="r"))
    np.save(sys.argv[2], np.stack([state.offset, state.activation]))
    print("fitted")
"""
COMMAND = """
from wordreel.cli.app import app
from wordreel.cli.lab import qbnorm
from wordreel.lab.evaluate import matrices
from wordreel.retrieval import rankings
import safetensors
limit()
app(["qbnorm", "--bank", sys.argv[1], "--test", sys.argv[2], "--json"])
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


def run(program, *arguments):
    command = [sys.executable, "-c", LIMIT + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "bank.npy"
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, ITEMS))
    hubs = rng.uniform(0, 0.3, ITEMS)
    for start in range(0, ROWS, 1024):
        out[start : start + 1024] = hubs + rng.uniform(-0.5, 0.5, (1024, ITEMS))
    assert out.nbytes == 4 * ALLOWED
    return path


def test_a_mapped_bank_of_four_times_the_memory(bank, tmp_path):
    assert run(FIT, bank, tmp_path / "found.npy") == "fitted\n"
    offset, activation = np.load(tmp_path / "found.npy")
    rows = np.load(bank, mmap_mode="r")
    total, active = np.zeros(ITEMS), np.zeros(ITEMS, bool)
    for start in range(0, ROWS, 1024):
        block = rows[start : start + 1024].astype(np.float64)
        total += np.exp(20 * block).sum(axis=0)
        active[block.argmax(axis=1)] = True
    assert np.allclose(offset, np.log(total / ROWS) / 20, atol=1e-6)
    assert activation.astype(bool).tolist() == active.tolist()


@pytest.mark.parametrize("kind", ["npy", "safetensors"])
def test_the_command_on_files_of_four_times_the_memory(bank, tmp_path, kind):
    rows = np.load(bank, mmap_mode="r")
    test = tmp_path / "test.npy"
    np.save(test, rows[:ITEMS])
    path = bank
    if kind == "safetensors":
        path = tmp_path / "bank.safetensors"
        save_file({"sims": rows}, path)
    found = json.loads(run(COMMAND, path, test))
    assert found["bank"] == ROWS
    assert found["gallery"] == ITEMS
    assert 0 < found["corrected"] <= ITEMS
