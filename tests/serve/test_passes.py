"""The quick pass is a job, the thorough one another that gives way; hits say which a file has had."""

import pytest
from tests.media_files import video
from tests.serve.conftest import Model, ThreadWork, running, wait

from wordreel.catalogue.passes import latest_returned
from wordreel.catalogue.store import LibraryStore


@pytest.fixture
def film(tmp_path):
    return video(tmp_path / "new.mp4", 9.0, 5, seed=99)


def thorough_jobs(site):
    return [job for job in site.get("/api/jobs").json["jobs"] if job["kind"] == "thorough"]


def analysis_of(site, name):
    return {hit["name"]: hit["analysis"] for hit in site.get("/api/search?text=red").json["hits"]}[name]


def test_a_quick_look_then_the_thorough_pass_which_gives_way(library, film):
    work = ThreadWork(library, Model(), quick=True)
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        added = site.ended(site.post("/api/folders", {"path": str(film)}).json["job"])
        assert (added["state"], added["report"]["added"]) == ("done", 1)
        assert analysis_of(site, "new.mp4") == "quick"
        assert site.get("/api/status").json["quick"] == 1
        (listed,) = site.get("/api/videos?q=new.mp4").json["items"]
        assert listed["analysis"] == "quick"
        (job,) = thorough_jobs(site)
        site.until(f"/api/jobs/{job['id']}", lambda found: found["job"]["progress"])
        with LibraryStore.open(library) as store:
            wait(lambda: latest_returned(store.catalogue) == [listed["content"]])  # by the search above
        bank = site.post("/api/banks", {"name": "mine", "source": {"texts": ["red", "blue"]}}).json["job"]
        assert site.ended(bank)["state"] == "done"  # the thorough pass is still held
        assert thorough_jobs(site)[0]["state"] in ("queued", "running")
        work.hold.set()
        assert site.ended(job)["state"] == "done"
        assert analysis_of(site, "new.mp4") == "thorough"
        assert site.get("/api/status").json["quick"] == 0
        assert site.get(f"/api/videos/{listed['content']}").json["analysis"] == "thorough"
    kinds = [kind for kind, _ in work.done]
    assert kinds == ["add", "thorough", "bank", "thorough"]


def test_what_waits_is_taken_up_when_a_server_starts(library, film):
    work = ThreadWork(library, Model(), quick=True)
    with LibraryStore.open(library) as store:
        work._look(store, [film])
    with running(library, work) as site:
        (job,) = thorough_jobs(site)
        assert site.ended(job)["state"] == "done"
        assert site.get("/api/status").json["quick"] == 0
    with running(library, work) as site:
        assert len(thorough_jobs(site)) == 1


def test_a_video_can_be_removed_while_the_thorough_pass_writes(library, film):
    work = ThreadWork(library, Model(), quick=True)
    work.hold.clear()
    with running(library, work, roots=(film.parent,)) as site:
        site.ended(site.post("/api/folders", {"path": str(film)}).json["job"])
        (job,) = thorough_jobs(site)
        site.until(f"/api/jobs/{job['id']}", lambda found: found["job"]["progress"])
        other = next(v for v in site.get("/api/videos").json["items"] if v["name"] != "new.mp4")
        removed = site.ask("DELETE", f"/api/videos/{other['content']}")
        assert (removed.status, len(removed.json["forgotten"])) == (200, 1)
        assert site.get(f"/api/videos/{other['content']}").status == 404
        work.hold.set()
        ended = site.ended(job)
        assert ended["state"] == "done", ended  # resumed
        assert analysis_of(site, "new.mp4") == "thorough"
