"""A server that watches folders: what comes is added, by one process, and only from where it may."""

import shutil

import pytest
from tests.serve.conftest import Model, ThreadWork, running, wait

from wordreel.catalogue.store import LibraryStore
from wordreel.serve.jobs import watched


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr(watched, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(watched, "STILL_SECONDS", 0.05)
    monkeypatch.setattr("wordreel.ingest.watch.STILL_SECONDS", 0.05)


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "home" / "Videos").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_what_comes_is_added_also_after_a_restart(library, home, ready):
    film = next(ready[1].rglob("film0.mp4"))
    work = ThreadWork(library, Model())
    with running(library, work, roots=(home,)) as site:
        assert site.get("/api/watched").json == {"folders": []}
        answer = site.ask("PUT", "/api/watched", {"path": "~/Videos", "on": True})
        assert answer.json == {"folders": [str(home / "Videos")]}
        shutil.copy(film, home / "Videos" / "a.mp4")
        jobs = site.until("/api/jobs", lambda found: any(job["title"] == "a.mp4" for job in found["jobs"]))
        assert site.ended(jobs["jobs"][0])["report"]["duplicates"] == 1
    assert work.done[0][1]["within"] == [str(home)]
    again = ThreadWork(library, Model())
    with running(library, again, roots=(home,)) as site:
        shutil.copy(film, home / "Videos" / "b.mp4")
        site.until("/api/jobs", lambda found: any(job["title"] == "b.mp4" for job in found["jobs"]))
        shutil.rmtree(home / "Videos")
        answer = site.ask("PUT", "/api/watched", {"path": str(home / "Videos"), "on": False})
        assert answer.json == {"folders": []}


def test_only_folders_that_may_be_added_are_watched(library, home):
    with running(library, roots=(home,)) as site:
        for on in (True, False):
            answer = site.ask("PUT", "/api/watched", {"path": "/etc", "on": on})
            assert answer.code == "outside_roots"
    with running(library, roots=(home,), read_only=True) as site:
        assert site.ask("PUT", "/api/watched", {"path": "~/Videos", "on": True}).code == "read_only"


def test_a_folder_is_looked_at_while_nothing_is_added(library, home, ready):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(home,)) as site:
        site.ask("PUT", "/api/watched", {"path": "~/Videos", "on": True})
        shutil.copy(next(ready[1].rglob("film0.mp4")), home / "Videos" / "a.mp4")
        job = site.post("/api/folders", {"path": "~/Videos"}).json["job"]
        service = site.service
        looks = watched.FolderLooks(service.store.catalogue, [], str(service.store.path))
        service.watched.look(looks)
        assert looks.moving == {}
        work.hold.set()
        site.ended(job)
        service.watched.look(looks)
        assert looks.folders == [str(home / "Videos")]


def test_one_process_of_a_server_watches_until_it_ends(library, tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(watched.WatchedFolders, "look", lambda self, looks: looked.append(self) or 0.01)
    store = LibraryStore.open(library)
    first, second = (watched.WatchedFolders(store, None, [], tmp_path) for _ in range(2))
    first.start()
    wait(lambda: looked)
    second.start()
    wait(lambda: len(looked) > 20)
    assert second not in looked
    first.close()
    wait(lambda: second in looked)
    second.close()
