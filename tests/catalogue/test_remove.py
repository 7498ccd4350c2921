"""What is not on disk: files that are gone, and folders that are not there now."""

import shutil

import pytest
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.remove import MissingFiles, missing_files
from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify


@pytest.fixture
def disk(tmp_path):
    for seed, name in enumerate(("usb/trip/a.mp4", "usb/trip/day 2/b.mp4", "home/c.mp4", "home/d.mp4")):
        write_media(tmp_path / name, seed=seed)
    return tmp_path


@pytest.fixture
def store(disk):
    with LibraryStore.create_or_open(disk / "library") as store:
        add(store, [disk / "usb", disk / "home"], experts(), FakeFence())
        yield store


@pytest.mark.parametrize("left", ["nothing", "an empty mount point"])
def test_a_folder_that_is_not_there_now_is_not_gone(store, disk, left):
    (disk / "usb").rename(disk / "unplugged")
    if left != "nothing":
        (disk / "usb").mkdir()
    (disk / "home" / "c.mp4").unlink()
    lost = str(disk / "usb") if left == "nothing" else str(disk / "usb" / "trip")
    assert missing_files(store.catalogue) == MissingFiles([str(disk / "home" / "c.mp4")], {lost: 2})
    problems = verify(store)
    assert sorted((problem.kind, problem.note) for problem in problems) == [("absent", True), ("gone", True)]
    assert all(problem.next_step.command.startswith("add FOLDER") for problem in problems)
    assert add(store, [disk / "usb"], experts(), FakeFence()).gone == []
    assert store.remove_missing() == [str(disk / "home" / "c.mp4")]
    assert len(store.files()) == 3
    shutil.rmtree(disk / "usb", ignore_errors=True)
    (disk / "unplugged").rename(disk / "usb")
    assert missing_files(store.catalogue) == MissingFiles([], {})
    assert verify(store) == []


def test_a_folder_whose_files_were_all_deleted_goes_by_its_name(store, disk):
    shutil.rmtree(disk / "usb")
    assert store.remove_missing() == []
    assert len(store.remove([disk / "usb"])) == 2
    assert verify(store) == []
