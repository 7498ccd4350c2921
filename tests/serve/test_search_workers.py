"""Searches that other processes answer are those that the server answers by itself."""

import itertools
import json
import os
import signal
import sys
from io import BytesIO
from pathlib import Path

import pytest
from tests.library.media_files import video
from tests.serve.conftest import opened, running, wait

from wordreel.search.query_terms import resolve_terms
from wordreel.serve import search_worker, search_workers
from wordreel.serve.schemas import SearchRequest
from wordreel.serve.search_answer import answer_search, as_written
from wordreel.serve.search_workers import SearchProcess, WorkerGone

QUESTIONS = [
    {"text": "a red and blue thing", "limit": 3},
    {"text": "red", "then": "blue"},
    {"text": "green", "moments": True, "offset": 2, "min_duration": 5.0},
]


@pytest.fixture
def colour_workers(monkeypatch):
    command = (sys.executable, "-m", "tests.serve.colour_worker")
    monkeypatch.setattr(search_workers, "COMMAND", command)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), *sys.path]))
    return command


def wait_until_idle(site):
    """Wait until every worker is idle."""
    wait(lambda: site.service.workers._idle.qsize() == site.service.options.workers)


def alive(pid):
    return Path(f"/proc/{pid}").exists()


def own_answer(library, question):
    request = SearchRequest(**question)
    opened_library = opened(library)
    query = resolve_terms(opened_library.store, as_written(request))
    return answer_search(opened_library.searcher(), request, query, {})


def answers_of(output):
    """The heads and bodies that a worker wrote."""
    stream, found = BytesIO(output.getvalue()), []
    while line := stream.readline():
        head = json.loads(line)
        found.append((head, stream.read(head.get("bytes", 0))))
    return found


def test_a_worker_answers_as_the_server_would(library):
    output = BytesIO()
    orders = [{"version": [1, 0], "request": question} for question in QUESTIONS]
    orders += [orders[0], {"version": [1, 0], "request": {"text": "red", "norm": "is"}}, {"version": [1, 0]}]
    lines = [json.dumps(order).encode() for order in orders]
    search_worker.work(opened(library), False, [1, 0], lines, output)
    greeting, *found, failed, opened_again = answers_of(output)
    assert greeting == opened_again == ({"ready": True}, b"")
    assert failed == ({"failed": True}, b""), "there is no bank: the server says so"
    expected = [own_answer(library, question) for question in QUESTIONS]
    assert [body for _, body in found] == [one.json for one in [*expected, expected[0]]]


def test_a_worker_opens_the_library_again_when_told_of_a_change(library, ready):
    """The same version: the old library. Another one: the library as it is."""
    output, question = BytesIO(), QUESTIONS[0]

    def orders():
        yield json.dumps({"version": [1, 0], "request": question}).encode()
        path = opened(library).search("red", limit=1)[0].path
        opened(library).remove(path)
        for version in ([1, 0], [1, 1], [2, 1]):
            yield json.dumps({"version": version, "request": question}).encode()

    search_worker.work(opened(library), False, [1, 0], orders(), output)
    totals = [json.loads(body)["total_estimate"] for _, body in answers_of(output)[1:]]
    assert totals == [4, 4, 4, 3]


def test_the_workers_of_a_server_see_changes_and_are_replaced(library, ready, tmp_path, colour_workers):
    expected = [json.loads(own_answer(library, question).json) for question in QUESTIONS]
    with running(library, roots=(ready[1], tmp_path), workers=2) as site:
        workers, answered = site.service.workers, []
        answer = workers.answer
        workers.answer = lambda *question: answered.append(answer(*question)) or answered[-1]

        def asked_a_worker(text):
            """Search for something new, and whether a worker answered."""
            answered.clear()
            assert site.get(f"/api/search?text={text}").status == 200
            return answered != [None]

        wait_until_idle(site)
        first = workers.pids
        assert len(first) == 2
        for question, known in zip(QUESTIONS, expected, strict=True):
            found = site.post("/api/search", question).json
            took = found.pop("took")
            assert found == known
            assert took["search_ms"] <= took["total_ms"] + 0.01
        numbers = itertools.count()
        wait(lambda: asked_a_worker(f"blue+{next(numbers)}"))
        assert site.post("/api/search", {"text": "red", "like": {"content": "a"}}).code == "bad_query"
        assert site.post("/api/search", {"text": "red", "norm": "is"}).code == "bad_bank"

        video(tmp_path / "new.mp4", 7.0, 5)
        job = site.ended(site.post("/api/folders", {"path": str(tmp_path / "new.mp4")}).json["job"])
        assert job["state"] == "done"
        site.until("/api/search?text=red", lambda found: found["total_estimate"] == 5)
        each = [workers._idle.get(timeout=120) for _ in range(2)]
        version, request = site.service.live.now.version, SearchRequest(text="red")
        answers = [json.loads(one.search(version, request).json) for one in each]
        assert [answer["total_estimate"] for answer in answers] == [5, 5]
        os.kill(each[0].pid, signal.SIGKILL)
        workers._idle.put(each[1])
        workers._idle.put(each[0])  # the latest is asked first
        wait(
            lambda: (
                site.get(f"/api/search?text=green+{next(numbers)}").status == 200
                and len(workers.pids) == 2
                and each[0].pid not in workers.pids
            )
        )
        wait_until_idle(site)
        last = workers.pids
    assert not any(alive(pid) for pid in first | last), "workers end with their server"


class Orders:
    """Asks for what the test says."""

    def __init__(self):
        self.count, self.loads = 0, []

    def wanted(self, searches):
        self.loads.append(searches)
        return self.count


def test_workers_are_started_in_a_burst_and_ended_after_it(library, colour_workers, monkeypatch):
    expected = json.loads(own_answer(library, QUESTIONS[0]).json)

    def answered(site):
        found = site.post("/api/search", {**QUESTIONS[0], "norm": "none"}).json
        assert [hit["score"] for hit in found["hits"]] == [hit["score"] for hit in expected["hits"]]

    monkeypatch.setattr("wordreel.serve.service.most_workers", lambda: 2)
    with running(library, workers=None) as site:
        workers, orders = site.service.workers, Orders()
        site.service._demand = orders
        answered(site)
        assert orders.loads[:2] == [1, 0]
        assert workers.pids == set()
        gone = set()
        for count in (2, 1, 0):
            orders.count = count
            answered(site)  # the load changes, and workers are asked for
            wait(lambda: workers._idle.qsize() == count == len(workers.pids) == workers._places)  # noqa: B023
            gone |= workers.pids
            answered(site)
        wait(lambda: not any(alive(pid) for pid in gone))  # zombies neither


def test_a_worker_that_is_no_longer_wanted_ends_after_its_answer(library, colour_workers):
    workers = search_workers.SearchWorkers(library, library, True, 60.0)
    try:
        workers.refresh((1, 0))
        workers.resize(1)
        wait(lambda: workers._idle.qsize() == 1)
        worker = workers._idle.get_nowait()  # as while it searches
        workers.resize(0)
        assert worker.search((1, 0), SearchRequest(text="red")).json
        workers._release(worker)
        assert workers.pids == set()
        assert not alive(worker.pid)
        assert workers.answer((1, 0), SearchRequest(text="red")) is None
        workers.resize(1)
        workers.resize(0)  # before it is ready
        wait(lambda: workers._places == 0)
        assert workers.pids == set()
    finally:
        workers.close()


def test_a_vector_server_a_gpu_and_one_core_need_no_workers(library, monkeypatch):
    monkeypatch.setattr("wordreel.serve.service.most_workers", lambda: 1)
    with running(library, workers=None) as site:
        assert site.service.workers is None
    monkeypatch.setattr("wordreel.serve.service.most_workers", lambda: 2)
    with running(library, workers=None) as site:
        assert site.service.workers is not None
    monkeypatch.setattr("wordreel.serve.service.accelerated", lambda: True)
    with running(library, workers=None) as site:
        assert site.service.workers is None
        assert site.get("/api/search?text=red").json["hits"]


def test_a_worker_ends_when_its_server_has_gone(library, colour_workers):
    order = {"library": str(library), "weights": str(library), "read_only": True, "version": [1, 0]}
    process = SearchProcess(colour_workers, order, 60.0)
    process._process.stdin.close()
    assert process._process.wait(120) == 0
    process.close()


def test_what_is_no_worker_is_refused(library):
    for program in ("pass", "input(); print('{')", "import time; input(); print(); time.sleep(1000)"):
        with pytest.raises(WorkerGone):
            SearchProcess([sys.executable, "-c", program], {}, 60.0)
