"""Adding over HTTP: folders, uploads, progress, cancelling, and what a restart takes up."""

import http.client
import json
import threading
import time
from pathlib import Path

import pytest
from tests.fakes import Colour, Talk
from tests.media_files import video
from tests.serve.conftest import Model, ThreadWork, running, wait

from wordreel.catalogue import jobs
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.errors import WordreelError
from wordreel.ingest.add import add
from wordreel.media import Fence
from wordreel.serve.jobs.job_process import JobProcess
from wordreel.serve.jobs.queue import JobStopped


@pytest.fixture
def film(tmp_path):
    return video(tmp_path / "new.mp4", 4.0, 5, seed=99)


def test_an_upload_is_added_and_found(site, library, film):
    answer = site.post("/api/uploads?name=..%2F..%2FMy+film.mp4", film.read_bytes())
    assert answer.status == 202
    upload, job = answer.json["upload"], answer.json["job"]
    assert upload["name"] == "My film.mp4"
    assert site.ended(job)["state"] == "done"
    found = site.get("/api/search?text=red").json["hits"]
    mine = next(hit for hit in found if hit["content"] == upload["id"])
    assert mine["name"] == "My film.mp4"
    assert Path(mine["path"]) == library / "uploads" / upload["id"]
    assert site.get(mine["media"]).body == film.read_bytes()
    assert site.get("/api/videos?q=my+film").json["total"] == 1
    gone = site.ask("DELETE", f"/api/videos/{upload['id']}")
    assert gone.json["forgotten"] == [mine["path"]]
    assert not Path(mine["path"]).exists()  # our copy; nobody else's
    assert len(site.get("/api/search?text=red").json["hits"]) == 4
    assert site.get(mine["media"]).code == "not_found"


def test_an_upload_as_a_form(site, film):
    body = (
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a/b.mp4"\r\n'
        b"Content-Type: video/mp4\r\n\r\n" + film.read_bytes() + b"\r\n--edge--\r\n"
    )
    answer = site.post("/api/uploads", body, {"Content-Type": "multipart/form-data; boundary=edge"})
    assert answer.json["upload"]["name"] == "b.mp4"
    assert answer.json["upload"]["bytes"] == film.stat().st_size
    assert site.ended(answer.json["job"])["report"]["added"] == 1
    empty = b'--edge\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n--edge--\r\n'
    assert (
        site.post("/api/uploads", empty, {"Content-Type": "multipart/form-data; boundary=edge"}).status == 422
    )
    assert site.post("/api/uploads", b"junk", {"Content-Type": "multipart/form-data"}).status in (400, 422)


def test_a_folder_with_a_long_name(library, tmp_path):
    with running(library, roots=(tmp_path,)) as site:
        answer = site.post("/api/folders", {"path": str(tmp_path / ("n" * 300))})
        assert (answer.status, answer.code) == (404, "no_folder")


def test_removing_during_the_servers_own_job_says_what_is_going_on(library, film):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        job = site.post("/api/folders", {"path": str(film)}).json["job"]
        site.until(f"/api/jobs/{job['id']}", lambda found: found["job"]["progress"])
        content = site.get("/api/videos").json["items"][0]["content"]
        answer = site.ask("DELETE", f"/api/videos/{content}")
        assert (answer.status, answer.code) == (409, "library_busy")
        assert film.name in answer.json["error"]["message"]
        assert "cancel it in Library" in answer.json["error"]["message"]
        assert "another wordreel" not in answer.json["error"]["message"]
        work.hold.set()


def test_forgetting_leaves_the_file(site):
    one = site.get("/api/videos").json["items"][0]
    assert site.ask("DELETE", f"/api/videos/{one['content']}").status == 200
    assert Path(one["path"]).exists()
    assert site.get("/api/videos").json["total"] == 3
    assert site.ask("DELETE", f"/api/videos/{one['content']}").code == "not_found"


def test_a_folder_is_added_under_a_root_only(library, tmp_path):
    root = tmp_path / "films"
    film = video(root / "sub" / "a.mp4", 3.0, 5, seed=5)
    (root / "bad.mp4").write_bytes(b"no film")
    (root / "out").symlink_to(tmp_path)
    with running(library, roots=(root,)) as site:
        job = site.ended(site.post("/api/folders", {"path": str(root)}).json["job"])
        assert job["state"] == "done"
        assert job["report"]["added"] == 1
        assert job["report"]["failed"][0]["path"].endswith("bad.mp4")
        assert [f["name"] for f in site.get("/api/failures").json] == ["bad.mp4"]
        assert site.get("/api/videos").json["total"] == 5
        for path in (
            tmp_path,
            "/",
            "/etc",
            root / "out",
            root / ".." / "library",
            "/films/../etc",
        ):
            answer = site.post("/api/folders", {"path": str(path)})
            assert (answer.status, answer.code) == (403, "outside_roots"), path
        for path in (root / "none", f"{root}x"):
            assert site.post("/api/folders", {"path": str(path)}).code == "no_folder"
        assert site.post("/api/folders", {"path": "relative"}).code == "invalid"
    assert film.exists()
    with running(library) as site:
        assert site.post("/api/folders", {"path": str(root)}).code == "outside_roots"


def test_links_are_judged_by_where_they_lead(library, tmp_path):
    """At adding, and at serving: a link may be turned elsewhere later."""
    root, outside = tmp_path / "films", tmp_path / "outside"
    film = video(root / "a.mp4", 3.0, 5, seed=5)
    secret = video(outside / "secret.mp4", 3.0, 5, seed=6)
    (root / "inside.mp4").symlink_to(film)
    (root / "outside.mp4").symlink_to(secret)
    with running(library, roots=(root,)) as site:
        job = site.ended(site.post("/api/folders", {"path": str(root)}).json["job"])
        assert [Path(one["path"]).name for one in job["report"]["failed"]] == ["outside.mp4"]
        names = [item["name"] for item in site.get("/api/videos?limit=500").json["items"]]
        assert "secret.mp4" not in names
        assert "outside.mp4" not in names
        assert site.post("/api/folders", {"path": str(root / "outside.mp4")}).code == "outside_roots"
    with LibraryStore.open(library) as store, Fence() as fence:  # by its owner, on the command line
        add(store, [root / "outside.mp4"], [Colour(), Talk("speech", rate=1000)], fence)
        content = store.file(root / "outside.mp4").content
        embed_library(store, Model())
    for roots, served in (((root,), False), ((root, outside), True)):
        with running(library, roots=roots) as site:
            for path in (f"/media/{content}", f"/api/thumb/{content}"):
                assert (site.get(path).status == 200) == served, (path, roots)


def test_nobody_adds_the_library_to_itself(library):
    with running(library, roots=(library.parent,)) as site:
        assert site.post("/api/folders", {"path": str(library / "cache")}).code == "outside_roots"


def events(site, job, most=50):
    """(event, job) as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
    connection.request("GET", f"/api/jobs/{job['id']}/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type").startswith("text/event-stream")
    name = ""
    try:
        yield from _read(answer, name, most)
    finally:
        connection.close()


def _read(answer, name, most):
    for _ in range(10 * most):
        line = answer.readline().decode().strip()
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, json.loads(line[6:])
            if name == "done":
                assert answer.read().strip() == b""
                return
    raise AssertionError("no end")


def test_progress_comes_as_events(library, film):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        job = site.post("/api/folders", {"path": str(film)}).json["job"]
        seen = []
        for name, now in events(site, job):
            seen.append((name, now["state"]))
            if now["progress"]:
                work.hold.set()
                assert now["progress"]["files_total"] == 1
        assert seen[-1] == ("done", "done")
        assert ("progress", "running") in seen
        assert site.get("/api/jobs").json["jobs"][0]["report"]["added"] == 1
        assert [name for name, _ in events(site, job)] == ["done"]
        assert site.get("/api/jobs/999/events").code == "not_found"
        wait(lambda: site.service.listeners == 0)


def test_a_listener_that_goes_away_is_forgotten(library, film):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        job = site.post("/api/folders", {"path": str(film)}).json["job"]
        listening = events(site, job)
        next(listening)
        assert site.service.listeners == 1
        listening.close()
        wait(lambda: site.service.listeners == 0)


def test_a_full_disk_refuses_uploads(library, film, monkeypatch):
    monkeypatch.setattr("wordreel.serve.uploads.SPARE", 2**80)
    with running(library) as site:
        answer = site.post("/api/uploads", film.read_bytes())
        assert (answer.status, answer.code) == (507, "disk_full")


def test_cancelling(library, film):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        first = site.post("/api/folders", {"path": str(film)}).json["job"]
        second = site.post("/api/folders", {"path": str(film)}).json["job"]
        site.until(f"/api/jobs/{first['id']}", lambda f: f["job"]["progress"])
        assert site.get("/api/status").json["jobs_running"] == 2
        assert site.ask("DELETE", f"/api/jobs/{second['id']}").json["job"]["state"] == "cancelled"
        assert site.ask("DELETE", f"/api/jobs/{first['id']}").json["job"]["state"] == "cancelled"
        assert site.get("/api/videos").json["total"] == 4
        assert site.get("/api/status").json["jobs_running"] == 0
        work.hold.set()
        again = site.post("/api/folders", {"path": str(film)}).json["job"]
        assert site.ended(again)["state"] == "done"
        assert len(work.done) == 2


def test_a_restart_takes_up_what_was_unfinished(library, film):
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        job = site.post("/api/folders", {"path": str(film)}).json["job"]
        site.until(f"/api/jobs/{job['id']}", lambda f: f["job"]["progress"])
    with LibraryStore.open(library) as store:
        assert [left.id for left in jobs.unfinished_jobs(store)] == [job["id"]]
    with running(library) as site:
        ended = site.ended(job)
        assert (ended["state"], ended["report"]["added"]) == ("done", 1)
        assert site.get("/api/videos").json["total"] == 5


def test_two_servers_share_the_jobs_of_a_library(library, film):
    """Each job runs once, and can be cancelled at either server."""
    first, second = ThreadWork(library, Model()), ThreadWork(library, Model())
    first.hold.clear()
    second.hold.clear()
    with running(library, first, roots=(film.parent,)) as one, running(library, second) as two:
        job = one.post("/api/folders", {"path": str(film)}).json["job"]
        one.until(f"/api/jobs/{job['id']}", lambda found: found["job"]["progress"])
        time.sleep(1.5)  # the other one has looked for work
        assert len(first.done) + len(second.done) == 1
        assert two.get(f"/api/jobs/{job['id']}").json["job"]["state"] == "running"
        other = two if first.done else one
        ended = other.ask("DELETE", f"/api/jobs/{job['id']}").json["job"]
        assert ended["state"] == "cancelled"
        assert one.get(f"/api/jobs/{job['id']}").json["job"]["state"] == "cancelled"
        first.hold.set()
        second.hold.set()
        again = two.ended(one.post("/api/folders", {"path": str(film)}).json["job"])
        assert (again["state"], again["report"]["added"]) == ("done", 1)
        assert len(first.done) + len(second.done) == 2


def test_the_job_of_a_killed_server_goes_to_another(library, monkeypatch):
    with LibraryStore.open(library) as store:
        job = jobs.add_job(store, "embed", "left", {})
        assert jobs.claim_job(store, "killed").id == job.id
        assert jobs.claim_job(store, "other") is None
        assert jobs.renew_claim(store, job.id, "killed")
        monkeypatch.setattr(jobs, "CLAIM_SECONDS", -1.0)
        assert jobs.claim_job(store, "other").id == job.id
        assert not jobs.renew_claim(store, job.id, "killed")
        jobs.release_job(store, job.id, "killed")  # which it may not do any more
        assert jobs.read_job(store, job.id).state == "running"


def test_somebody_else_is_writing(site, library):
    content = site.get("/api/videos").json["items"][0]["content"]
    with LibraryStore.open(library) as other, other.writing():
        answer = site.ask("DELETE", f"/api/videos/{content}")
        assert (answer.status, answer.code) == (409, "library_busy")
        assert site.get("/api/search?text=red").status == 200


def test_changes_by_another_program_are_seen(site, library, monkeypatch):
    monkeypatch.setattr("wordreel.serve.service.REOPEN_EVERY", 0.0)
    with LibraryStore.open(library) as other:
        other.remove([other.files()[0].path])
    site.until("/api/search?text=red", lambda found: len(found["hits"]) == 3)


def test_a_queue_has_an_end(library, film, monkeypatch):
    monkeypatch.setattr("wordreel.serve.jobs.queue.MAX_WAITING", 2)
    work = ThreadWork(library, Model())
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        codes = [site.post("/api/folders", {"path": str(film)}).status for _ in range(3)]
        assert codes == [202, 202, 429]
        work.hold.set()


def test_a_process_of_its_own(library):
    """The real way: a child that opens the library, says what is wrong, and goes when it is told to."""
    work = JobProcess(library)
    with pytest.raises(WordreelError, match="no job is called 'nonsense'"):
        work("nonsense", {}, lambda progress: None, threading.Event())
    stop = threading.Event()
    told: list[dict] = []
    with LibraryStore.open(library) as store, store.writing():
        threading.Timer(3.0, stop.set).start()
        with pytest.raises(JobStopped):
            work("bank", {"name": "x", "source": {"texts": ["a"]}}, told.append, stop)
    assert all(progress["step"] == "waiting" for progress in told)


def test_rows_are_not_kept_forever(library, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_ENDED", 3)
    with LibraryStore.open(library) as store:
        for number in range(6):
            job = jobs.add_job(store, "add", str(number), {"paths": []})
            jobs.end_job(store, job.id, jobs.DONE)
        kept = jobs.add_job(store, "add", "last", {"paths": []})
        assert [job.title for job in jobs.latest_jobs(store, 10)] == ["last", "5", "4", "3"]
        assert jobs.unfinished_jobs(store) == [kept]
        assert time.time() - kept.made_at < 60
