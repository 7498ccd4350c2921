"""`add` on workers equals `add` in one process, whatever dies on the way. On Ray: `test_ray.py`."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes import FakeFence, experts, write_media
from tests.workers import calls

from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, WeightsError
from wordreel.ingest.add import add, add_on
from wordreel.ingest.worker_extractor import ClusterExtractor, ExtractSetup
from wordreel.maintain.move_tracks import move_tracks
from wordreel.maintain.verify import verify
from wordreel.workers.executor import Executor
from wordreel.workers.local_worker import local_executor

NAMES = [expert.card.name for expert in experts()]


@pytest.fixture(scope="module")
def executor():
    with local_executor(2) as made:
        yield made


@pytest.fixture
def store(tmp_path):
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        yield made


@pytest.fixture
def media(tmp_path) -> Path:
    folder = tmp_path / "media"
    for n in range(6):
        write_media(folder / f"{n}.mp4", seconds=20.0 + 60 * n, seed=n)
    shutil.copy(folder / "1.mp4", folder / "copy.mp4")
    write_media(folder / "bad.mp4", bad="no picture in it")
    return folder


def setup(store: LibraryStore, decoder=calls.fence) -> ExtractSetup:
    return ExtractSetup.of(store, NAMES, calls.load_fake, decoder)


def contents(store: LibraryStore) -> list[object]:
    """All that an add writes, without ids and times."""
    clips = [(c.clip, c.shot) for video in store.videos() for c in store.clips(video.content)]
    words = [store.words(video.content) for video in store.videos()]
    return [store.videos(), store.tracks(), clips, words, [(f.path, f.reason) for f in store.failures()]]


def alone(tmp_path: Path, media: Path) -> list[object]:
    with LibraryStore.create_or_open(tmp_path / "alone") as store:
        add(store, [media], experts(), FakeFence())
        return contents(store)


def test_same_library_as_in_one_process(executor, store, media, tmp_path):
    seen = []
    report = add_on(executor, store, [media], setup(store), seen.append)
    assert len(report.added) + len(report.duplicates) == 7
    assert [(Path(p).name, r) for p, r in report.failed] == [("bad.mp4", "no picture in it")]
    assert contents(store) == alone(tmp_path, media)
    assert verify(store) == []
    assert (seen[-1].done, seen[-1].total, seen[-1].failures) == (8, 8, 1)
    again = add_on(executor, store, [media], setup(store))
    assert (again.skipped, again.added, len(again.still_failed)) == (7, [], 1)


def test_new_experts_run_on_known_files(executor, store, media, tmp_path):
    add(store, [media], [e for e in experts() if e.card.name == "colour"], FakeFence())
    report = add_on(executor, store, [media], setup(store))
    assert len(report.updated) + len(report.duplicates) + report.skipped == 7
    assert contents(store)[:3] == alone(tmp_path, media)[:3]


def test_a_poisoned_file_is_reported_and_the_rest_is_added(executor, store, media):
    write_media(media / "poison.mp4", seed=50)
    write_media(media / "unlucky.mp4", seed=51)
    report = add_on(executor, store, [media], setup(store))
    failed = {Path(path).name: reason for path, reason in report.failed}
    assert "died 3 times" in failed["poison.mp4"]
    assert (media / "unlucky.died").exists()
    assert str(media / "unlucky.mp4") in report.added
    assert len(report.added) == 7
    assert verify(store) == []


def test_a_worker_that_does_not_see_the_library_ends_the_run(executor, store, media, tmp_path):
    elsewhere = replace(setup(store), library=tmp_path / "nowhere")
    with pytest.raises(LibraryError, match="does not see the library"):
        add_on(executor, store, [media], elsewhere)
    other_file = replace(setup(store), inode=1)
    with pytest.raises(LibraryError, match="does not see the library"):
        ClusterExtractor(executor, other_file)


def test_a_worker_with_other_weights_ends_the_run(executor, store, media):
    extractor = ClusterExtractor(executor, setup(store))
    extractor.fingerprints["colour"] = "another"
    path = media / "1.mp4"
    with pytest.raises(WeightsError, match="other weights of the expert colour"):
        extractor.extract(path, FileStamp.of(path.stat()), NAMES, lambda seconds: None)


def test_a_file_that_only_this_machine_sees_ends_the_run(store, media):
    class Blind(Executor):
        def run(self, function, *args, on_event=None):
            if args[1:]:
                raise FileNotFoundError(2, "No such file or directory")
            return dict.fromkeys(NAMES, "fingerprint")

    with Blind(lambda number: None, 0) as executor:  # type: ignore[arg-type,return-value]
        extractor = ClusterExtractor(executor, setup(store))
        with pytest.raises(LibraryError, match="does not see"):
            extractor.probe(media / "1.mp4")
        with pytest.raises(FileNotFoundError):
            extractor.probe(media / "gone.mp4")


def test_killed_in_the_middle_the_same_call_resumes(executor, store, media, tmp_path):
    child = os.fork()
    if child == 0:
        try:
            with local_executor(2) as workers, LibraryStore.open(store.path) as mine:
                add_on(workers, mine, [media], setup(mine, calls.slow_fence))
        finally:
            os._exit(1)
    end = time.monotonic() + 60
    while not store.files() and time.monotonic() < end:
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    before = len(store.files())
    assert before > 0
    report = add_on(executor, store, [media], setup(store))
    assert report.skipped == before or before == 7
    assert contents(store) == alone(tmp_path, media)
    assert verify(store) == []


def test_tracks_in_an_object_store(executor, store, media, tmp_path):
    """Workers write objects; the library's folder need not be shared."""
    move_tracks(store, f"file://{tmp_path}/bucket/tracks")
    elsewhere = replace(setup(store), library=tmp_path / "not mounted")
    report = add_on(executor, store, [media], elsewhere)
    assert len(report.added) + len(report.duplicates) == 7
    assert contents(store) == alone(tmp_path, media)
    assert (verify(store), list((store.path / "tracks").glob("??"))) == ([], [])
    assert list((tmp_path / "bucket" / "tracks").glob("??/*.safetensors"))
