"""Models over HTTP: what there is, consent to a download, and a job that switches."""

import pytest
from tests.serve.conftest import MARK, Model, running

from wordreel.backbones.installed import NAMED
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.switch_model import switch
from wordreel.ingest.add_report import AddProgress
from wordreel.progress import Progress
from wordreel.serve import live
from wordreel.serve.jobs.job_process import run_job


class Recorder:
    """A job runner that does nothing but remember."""

    def __init__(self):
        self.asked = []

    def __call__(self, kind, request, tell, stop):
        self.asked.append((kind, request))
        return {}


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def site(library, recorder):
    with running(library, recorder) as made:
        yield made


def test_the_list_names_what_can_answer(site):
    rows = {row["key"]: row for row in site.get("/api/models").json["models"]}
    assert rows["joint"]["in_use"]
    assert rows["joint"]["kind"] == "built-in"
    assert set(NAMED) <= set(rows)
    named = rows["clip-vit-b-32"]
    assert named["download"] > 10**8
    assert named["licence"]
    assert not named["in_use"]


def test_a_download_needs_consent(site, recorder):
    refused = site.post("/api/models", {"model": "clip-vit-b-32"}, MARK)
    assert (refused.status, refused.code) == (409, "needs_download")
    assert "MB" in refused.json["error"]["message"]
    agreed = site.post("/api/models", {"model": "clip-vit-b-32", "download": True}, MARK)
    assert agreed.status == 202
    assert agreed.json["job"]["kind"] == "use"
    site.ended(agreed.json["job"])
    assert recorder.asked == [("use", {"model": "clip-vit-b-32", "download": True})]


@pytest.mark.parametrize("model", ["/etc", "somebody/clip", "../../x", "nothing"])
def test_paths_and_hub_ids_are_the_owners(site, recorder, model):
    answer = site.post("/api/models", {"model": model, "download": True}, MARK)
    assert (answer.status, answer.code) == (404, "no_model")
    assert recorder.asked == []


def test_a_server_for_reading_switches_nothing(library, recorder):
    with running(library, recorder, read_only=True) as site:
        assert site.post("/api/models", {"model": "joint"}, MARK).status == 403
        assert site.get("/api/models").status == 200


def test_searches_see_the_switch_when_the_job_has_ended(library, monkeypatch):
    class Other(Model):
        name, fingerprint = "other", "fedcba9876543210"

    def work(kind, request, tell, stop):
        assert (kind, request["model"]) == ("use", "joint")
        with LibraryStore.open(library) as store:
            return {"embedded": switch(store, Other(), Other.fingerprint)}

    monkeypatch.setattr(live, "open_model", lambda store, weights: Other())
    with running(library, work) as site:
        job = site.post("/api/models", {"model": "joint"}, MARK).json["job"]
        assert site.ended(job)["state"] == "done"
        assert site.get("/api/status").json["model"]["name"] == "other"
        rows = {row["key"]: row["in_use"] for row in site.get("/api/models").json["models"]}
        assert not rows["joint"]


@pytest.mark.parametrize("download", [True, False])
def test_the_job_passes_consent_and_progress_on(download):
    told = []

    class Fake:
        def use(self, model, on_progress, *, confirm_download):
            sizes = {"bytes_done": 1.0, "bytes_total": 4, "media_seconds": 1.0, "seconds": 1.0}
            on_progress(Progress("downloading", 1, 2))
            on_progress(AddProgress("adding files", 1, 4, **sizes))
            from wordreel.embed.switch_model import UseResult

            return UseResult(model, "f" * 16, int(confirm_download(None)))

    report = run_job(Fake(), "use", {"model": "clip", "download": download}, told.append)
    assert report["embedded"] == int(download)
    assert [(now["step"], now["done"], now["total"]) for now in told] == [
        ("downloading", 1, 2),
        ("files", 1, 4),
    ]
