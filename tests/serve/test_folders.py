"""Choosing folders, trying failed files again, pausing work, and states of files."""

import os
import shutil

import pytest
from tests.serve.conftest import Model, ThreadWork, running

from wordreel.serve.folders import allowed_path
from wordreel.serve.problems import Problem


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder with videos, a hidden folder, and a link that leads out of it."""
    folder = tmp_path / "home"
    for name in ("Videos/2024", "Videos/B side", "Videos/.hidden", "Music"):
        (folder / name).mkdir(parents=True)
    for name in ("a.mp4", "b.MOV", "notes.txt", ".c.mp4"):
        (folder / "Videos" / name).touch()
    (folder / "Videos" / "out").symlink_to(tmp_path)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_folders_are_listed_within_the_roots(library, home):
    with running(library, roots=(home / "Videos", home / "Music")) as site:
        roots = site.get("/api/folders").json
        assert [one["path"] for one in roots["folders"]] == [str(home / "Videos"), str(home / "Music")]
        found = site.get("/api/folders?path=~/Videos").json
        assert (found["path"], found["parent"], found["files"]) == (str(home / "Videos"), None, 2)
        assert [one["name"] for one in found["folders"]] == ["2024", "B side"]
        below = site.get(f"/api/folders?path={found['folders'][0]['path']}").json
        assert (below["parent"], below["folders"]) == (str(home / "Videos"), [])
        for path in ("~", "/", "~/Videos/..", "~/Videos/out", "/etc"):
            assert site.get(f"/api/folders?path={path}").code == "outside_roots", path
        assert site.get("/api/folders?path=~/Videos/none").code == "no_folder"
        assert site.get("/api/folders?path=~/Videos/a.mp4").code == "no_folder"
    with running(library, roots=(home,), read_only=True) as site:
        assert site.get("/api/folders").code == "read_only"


def test_missing_forbidden_and_other_folders_have_an_answer_each(library, home, monkeypatch):
    access = os.access
    locked = home / "Videos" / "2024"
    monkeypatch.setattr("os.access", lambda path, mode: path != locked and access(path, mode))
    answers = {}
    with running(library, roots=(home,)) as site:
        for path in ("~/Videos/none", "~/Videos/2024", "/etc", "/nowhere"):
            answer = site.post("/api/folders", {"path": path})
            answers[path] = answer.code, answer.json["error"]["message"]
    assert answers["~/Videos/none"] == (
        "no_folder",
        f"there is no folder {home}/Videos/none; check how it is written",
    )
    assert answers["~/Videos/2024"] == (
        "no_access",
        f"wordreel may not read {locked}; change its permissions",
    )
    assert answers["/etc"] == ("outside_roots", f"only folders inside of these may be added: {home}")
    assert answers["/nowhere"] == ("no_folder", "there is no folder /nowhere; check how it is written")


def test_who_asks_from_elsewhere_does_not_learn_what_is_outside(home, tmp_path):
    for path in ("/etc", "/nowhere"):
        with pytest.raises(Problem) as refused:
            allowed_path((home,), tmp_path / "library", path, private=True)
        assert refused.value.code == "outside_roots"


def test_a_folder_below_the_home_is_added(library, home, ready):
    shutil.copy(next(ready[1].rglob("film0.mp4")), home / "Videos" / "2024")
    with running(library, roots=(home,)) as site:
        job = site.post("/api/folders", {"path": "~/Videos/2024"}).json["job"]
        assert site.ended(job)["report"]["duplicates"] == 1


def test_failed_files_are_tried_again(library, home, tmp_path):
    broken = home / "Videos" / "torn.mp4"
    broken.write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
    work = ThreadWork(library, Model())
    with running(library, work, roots=(home,)) as site:
        assert site.post("/api/failures/retry").code == "nothing_failed"
        site.ended(site.post("/api/folders", {"path": str(broken)}).json["job"])
        assert [one["name"] for one in site.get("/api/failures").json] == ["torn.mp4"]
        site.ended(site.post("/api/failures/retry").json["job"])
    kind, request = work.done[-1]
    assert (kind, request["paths"], request["retry_failed"]) == ("add", [str(broken)], True)


def test_work_pauses_and_resumes(library, home, ready):
    for name in ("film2.mp4", "film3.mp4"):
        shutil.copy(next(ready[1].rglob(name)), home / "Videos" / "2024")
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(home,)) as site:
        job = site.post("/api/folders", {"path": "~/Videos/2024"}).json["job"]
        address = f"/api/jobs/{job['id']}"
        site.until(address, lambda found: found["job"]["progress"])
        assert site.ask("PUT", "/api/jobs", {"paused": True}).json["paused"]
        assert site.until(address, lambda found: found["job"]["state"] == "queued")
        assert site.get("/api/jobs").json["paused"]
        runs = len(work.done)
        work.hold.set()
        assert not site.ask("PUT", "/api/jobs", {"paused": False}).json["paused"]
        assert site.ended(job)["state"] == "done"
        assert len(work.done) > runs


def test_states_of_files(library, tmp_path):
    from wordreel.catalogue.store import LibraryStore

    with LibraryStore.open(library) as store:
        film = next(f for f in store.files() if f.path.endswith("film0.mp4"))
        away = os.fsencode(tmp_path / "away.mp4")
        store.catalogue.run("UPDATE files SET path = ? WHERE path = ?", away, os.fsencode(film.path))
    with running(library) as site:
        states = {one["content"]: one["state"] for one in site.get("/api/videos").json["items"]}
        assert states.pop(film.content) == "missing"
        assert set(states.values()) == {"ready"}
        assert site.get(f"/api/videos/{film.content}").json["state"] == "missing"
        assert site.get(f"/media/{film.content}").code == "gone"
