"""A real server on a loopback port over a small library of real files, seen by experts that cost nothing."""

import http.client
import json
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import Colour, Talk
from tests.media_files import video
from tests.search.conftest import ColourModel

from wordreel.catalogue.passes import waiting_files
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.ingest.add import add, add_with
from wordreel.ingest.extract import extract_file
from wordreel.ingest.quick import QuickExperts, QuickExtractor
from wordreel.ingest.tasks import AddOptions
from wordreel.library import Library
from wordreel.media import Fence

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from wordreel.serve.app import build_server
from wordreel.serve.jobs.job_process import add_report, files_progress
from wordreel.serve.jobs.queue import JobStopped
from wordreel.serve.options import Options
from wordreel.serve.service import Service

MARK = {"X-Wordreel": "1"}


class Model(ColourModel):
    """Its words are speech, so that filters know them."""

    experts = track_experts = ("colour", "speech")

    def embed(self, tracks, clips):
        with np.errstate(invalid="ignore"):  # black has no colour
            vectors, available = super().embed(tracks, clips)
        return np.nan_to_num(vectors), available


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of an error, which must have the one shape."""
        error = self.json["error"]
        assert set(error) == {"code", "message", "field", "next_step"}
        assert error["message"]
        return error["code"]


def wait(done, seconds=120.0):
    """Look again until it is so; a time limit that only a fault reaches."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@dataclass
class Site:
    """A running server, and how to ask it."""

    port: int
    service: Service
    headers: dict = field(default_factory=dict)

    def ask(self, method, path, body=None, headers=None, timeout=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        said = {**self.headers, **(headers or {})}
        if isinstance(body, dict | list):
            body, said = json.dumps(body), {"Content-Type": "application/json", **said}
        try:
            connection.request(method, path, body, said)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body=None, headers=None):
        return self.ask("POST", path, body, headers)

    def until(self, path, wanted, seconds=120):
        """Ask again until the answer is as wanted."""
        deadline = time.monotonic() + seconds
        while not wanted(found := self.get(path).json):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found

    def ended(self, job, seconds=120):
        return self.until(
            f"/api/jobs/{job['id']}", lambda f: f["job"]["state"] not in ("queued", "running"), seconds
        )["job"]


class ThreadWork:
    """JobQueue done by a thread with the fake experts; `hold` keeps it from finishing a file.

    With `quick`, files are added by the quick pass, which nothing holds.
    """

    def __init__(self, path, model, quick=False):
        self.path, self.model, self.quick = path, model, quick
        self.hold = threading.Event()
        self.hold.set()
        self.done = []

    def __call__(self, kind, request, tell, stop):
        self.done.append((kind, request))

        def moved(now):
            tell(files_progress(now))
            while not self.hold.wait(0.02):
                if stop.is_set():
                    raise JobStopped
            if stop.is_set():
                raise JobStopped

        with LibraryStore.open(self.path) as store:
            if kind == "embed":
                return {"embedded": embed_library(store, self.model)}
            if kind == "bank":
                library = opened(self.path)
                texts = request["source"]["texts"] if request["source"] != "builtin" else ["red", "blue dogs"]
                return {"size": len(library.banks.build(request["name"], texts, "a test"))}
            if kind == "check":
                return asdict(opened(self.path).banks.check(request["bank"], request["captions"]))
            if self.quick and kind == "add":
                return self._look(store, request["paths"])
            assert kind in ("add", "thorough")
            paths = request["paths"] or [file.path for file in waiting_files(store.catalogue)]
            with Fence() as fence:
                report = add(
                    store,
                    paths,
                    [Colour(), Talk("speech", rate=1000)],
                    fence,
                    within=request.get("within"),
                    on_progress=moved,
                )
            embed_library(store, self.model)
            return add_report(report)

    def _look(self, store, paths):
        with Fence() as fence:
            extractor = QuickExtractor(QuickExperts([Colour()]), fence, store.track_files)
            report = add_with(extractor, store, paths, 1, options=AddOptions(analysis="quick"))
        embed_library(store, self.model)
        return add_report(report)


def opened(path):
    return Library(path, model=Model())


@pytest.fixture(scope="session")
def ready(tmp_path_factory):
    """(library, media): four videos, of which two have several clips."""
    home = tmp_path_factory.mktemp("serve")
    for number, seconds in enumerate((3.0, 4.0, 25.0, 45.0)):
        video(home / "media" / f"part{number % 2}" / f"film{number}.mp4", seconds, 5, sound=number != 1)
    with LibraryStore.create_or_open(home / "library") as store, Fence() as fence:
        add(store, [home / "media"], [Colour(), Talk("speech", rate=1000)], fence)
        embed_library(store, Model())
    return home / "library", home / "media"


@pytest.fixture
def library(ready, tmp_path):
    """A copy that may be changed."""
    shutil.copytree(ready[0], tmp_path / "library")
    return tmp_path / "library"


@contextmanager
def running(path: Path, work=None, **options):
    """A server on a free port."""
    library = opened(path)
    chosen = Options(port=0, **options)
    fence = Fence()

    def analyse(file, model):
        return extract_file(file, [Colour(), Talk("speech", rate=1000)], fence)

    service = Service(
        library, chosen, job_runner=work or ThreadWork(path, Model()), fence=fence, analyse=analyse
    )
    try:
        with serving(service) as site:
            yield site
    finally:
        library.store.close()


@contextmanager
def serving(service: Service):
    """A server of this process on a free port."""
    made = build_server(service)
    sock = made.config.bind_socket()
    thread = threading.Thread(target=made.run, args=([sock],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 120
    while not made.started:
        assert thread.is_alive() and time.monotonic() < deadline  # noqa: PT018
        time.sleep(0.01)
    try:
        yield Site(sock.getsockname()[1], service)
    finally:
        made.should_exit = True
        thread.join(60)
        assert not thread.is_alive(), "the server does not stop"


@pytest.fixture
def site(library, ready):
    with running(library, roots=(ready[1],)) as made:
        yield made
