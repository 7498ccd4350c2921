"""The same calls and the same `add` on a real Ray cluster, with workers and nodes killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.banks.test_library_workers import unit
from tests.fakes import FakeFence, experts, write_media
from tests.ingest.test_on_workers import alone, contents, setup
from tests.search.conftest import ColourModel
from tests.workers import calls

from wordreel.banks.fitted_states import fit_queries
from wordreel.banks.library_workers import LibraryWorkers
from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.hubness import make_method
from wordreel.ingest.add import add, add_on
from wordreel.library import Library
from wordreel.maintain.verify import verify
from wordreel.workers.executor import ATTEMPTS, CallFailed
from wordreel.workers.ray_worker import ray_executor
from wordreel.workers.world import run_world

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="make test-ray sets up Ray")

ROOT = Path(__file__).parents[2]
VIDEOS = os.environ.get("WORDREEL_TEST_VIDEOS")
STORE_MEMORY = 100 * 2**20


@pytest.fixture
def cluster():
    """A head without cores, and two nodes of one core each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE_MEMORY})
    for _ in range(2):
        made.add_node(num_cpus=1, object_store_memory=STORE_MEMORY)
    yield made
    made.shutdown()


@pytest.fixture
def executor(cluster):
    with ray_executor(cluster.address) as made:
        yield made


@pytest.fixture
def store(tmp_path):
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        yield made


@pytest.fixture
def media(tmp_path) -> Path:
    folder = tmp_path / "media"
    for n in range(20):
        write_media(folder / f"{n:02}.mp4", seconds=600.0, seed=n)
    write_media(folder / "poison.mp4", seed=50)
    write_media(folder / "bad.mp4", bad="no picture in it")
    return folder


def test_calls(executor, tmp_path):
    assert executor.count == 2
    assert list(executor.map(calls.late_square, ((n,) for n in range(20)))) == [n * n for n in range(20)]
    with pytest.raises(ValueError, match="what a pity"):
        executor.run(calls.fail, "what a pity")
    assert executor.run(calls.die_once, tmp_path / "died", 7) == 7
    with pytest.raises(CallFailed, match=f"died {ATTEMPTS} times"):
        executor.run(calls.die)
    assert executor.run(calls.count_to, 3, on_event=lambda step: None) == 3


def test_a_world_that_loses_a_worker_starts_again(executor, tmp_path):
    pytest.importorskip("torch")
    marker, lines = tmp_path / "died", []
    printed = run_world(executor, calls.add_ranks, (marker, False), (marker, True), lines.append)
    assert printed == "total 3 of 2, resumed True\n"
    assert lines[0] == "a worker was lost; starting again from the last saved state"


def test_a_library_is_embedded_and_fitted(executor, store, tmp_path):
    for n in range(6):
        write_media(tmp_path / "media" / f"{n}.mp4", seconds=30.0 + n, seed=n)
    add(store, [tmp_path / "media"], experts(), FakeFence())
    model = ColourModel()
    workers = LibraryWorkers(executor, store, model, ColourModel)
    embed_library(store, model)
    cache = embedding_cache(store, model)
    here = np.array(cache.load().vectors)
    cache.clear()
    embed_library(store, model, embed_videos=workers.embed_videos)
    gallery, _ = cache.open()
    np.testing.assert_array_equal(gallery.vectors, here)
    rng = np.random.default_rng(0)
    vectors = BankEmbeddings(np.arange(20), unit(rng, 20), np.ones((20, 2), np.float32))
    state = workers.fit(np.arange(20), vectors, gallery, make_method("is"))
    one = fit_queries(np.arange(20), vectors, gallery, make_method("is"))
    np.testing.assert_allclose(state.bias(), one.bias(), rtol=1e-5, atol=1e-6)


def when_added(store: LibraryStore, count: int, action) -> threading.Thread:
    """Do something as soon as so many files are in the library."""

    def wait() -> None:
        with LibraryStore.open(store.path) as mine:
            while len(mine.files()) < count:
                time.sleep(0.05)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def kill_a_worker() -> int:
    """Kill one of the processes that work now: those of before may have met the poisoned file."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if line.read_bytes().startswith(b"ray::_Actor"):
                process = int(line.parent.name)
                os.kill(process, signal.SIGKILL)
                return process
    raise AssertionError("no worker is there to kill")


def test_a_worker_and_then_a_node_are_killed(cluster, executor, store, media, tmp_path):
    node = sorted(cluster.worker_nodes, key=str)[0]
    killed: list[int] = []
    first = when_added(store, 4, lambda: killed.append(kill_a_worker()))
    second = when_added(store, 10, lambda: cluster.remove_node(node, allow_graceful=False))
    report = add_on(executor, store, [media], setup(store, calls.slow_fence))
    first.join()
    second.join()
    assert killed
    assert len(report.added) == 20
    assert {Path(path).name for path, _ in report.failed} == {"bad.mp4", "poison.mp4"}
    (media / "poison.mp4").unlink()
    add(store, [media], experts(), FakeFence())  # forgets the failure of the file that is gone
    assert contents(store) == alone(tmp_path, media)
    assert verify(store) == []


def test_a_killed_command_resumes(cluster, store, media, tmp_path):
    (media / "poison.mp4").unlink()
    script = (
        "import sys; from pathlib import Path; from tests.workers import calls, test_add\n"
        "from wordreel.catalogue.store import LibraryStore; from wordreel.ingest.passes import add_on\n"
        "from wordreel.workers.ray_worker import ray_executor\n"
        "store = LibraryStore.open(sys.argv[1])\n"
        "with ray_executor(sys.argv[3]) as executor:\n"
        "    add_on(executor, store, [sys.argv[2]], test_add.setup(store, calls.slow_fence))\n"
    )
    command = [sys.executable, "-c", script, str(store.path), str(media), cluster.address]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    run = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})
    when_added(store, 3, run.kill).join()
    run.wait()
    before = len(store.files())
    assert 3 <= before < 20
    again = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert again.returncode == 0
    assert contents(store) == alone(tmp_path, media)
    assert verify(store) == []


@pytest.mark.skipif(not VIDEOS, reason="WORDREEL_TEST_VIDEOS names no folder")
def test_real_videos_give_the_same_tracks(cluster, tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    for path in sorted(p for p in Path(str(VIDEOS)).iterdir() if p.suffix == ".mp4")[:8]:
        (folder / path.name).symlink_to(path)
    names = ["appearance", "motion", "shots"]
    with Library(tmp_path / "one") as one, Library(tmp_path / "many") as many:
        one.add(folder, experts=names)
        many.add(folder, experts=names, on=cluster.address)
        assert one.store.tracks() == many.store.tracks()
        assert len(many.store.files()) == 8
        assert verify(many.store) == []
