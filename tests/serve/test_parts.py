"""The parts of a server that can be looked at alone."""

import json
import re
import subprocess
import sys
import threading

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.serve.conftest import Model, opened

from wordreel.search.query import Query
from wordreel.serve.live import LiveSearcher
from wordreel.serve.metrics import Metrics
from wordreel.serve.options import Options
from wordreel.serve.service import cached_tracks


def test_searches_see_the_old_index_or_the_new(library):
    opened_library = opened(library)
    live = LiveSearcher(opened_library.store, Model)
    wrong, removed, stop = [], set(), threading.Event()

    def look():
        while not stop.is_set():
            searcher = live.now.searcher
            found = {hit.content for hit in searcher.search(Query("red"))}
            lost = set(searcher.snapshot.contents()) - found
            if lost - removed:  # this searcher may be older than several removals, and lose no other
                wrong.append(lost - removed)

    thread = threading.Thread(target=look)
    thread.start()
    for file in opened_library.store.files()[:3]:
        removed.add(file.content)
        opened_library.store.remove([file.path])
        live.reopen()
    stop.set()
    thread.join()
    assert not wrong
    assert len(live.now.searcher.snapshot.contents()) == 1


def test_metrics_are_text_that_prometheus_reads():
    metrics, other = Metrics(), Metrics()
    metrics.refused.labels('a"b\\c\n').inc()
    for value in (0.005, 0.01, 0.04, 7.0):
        metrics.search_seconds.observe(value)
    families = {
        family.name: family for family in text_string_to_metric_families(metrics.text(3, 25).decode())
    }
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert families["wordreel_refused"].type == "counter"
    assert families["wordreel_search_seconds"].type == "histogram"
    assert families["wordreel_items"].type == "gauge"
    assert samples["wordreel_refused_total", ("reason", 'a"b\\c\n')] == 1
    assert samples["wordreel_search_seconds_bucket", ("le", "0.01")] == 2
    assert samples["wordreel_search_seconds_bucket", ("le", "0.05")] == 3
    assert samples["wordreel_search_seconds_bucket", ("le", "+Inf")] == 4
    assert samples[("wordreel_search_seconds_sum",)] == pytest.approx(7.055)
    assert samples[("wordreel_search_seconds_count",)] == 4
    assert (samples[("wordreel_items",)], samples[("wordreel_jobs_waiting",)]) == (25, 3)
    assert not any("_created" in name for name, *_ in samples)
    assert b"wordreel_refused_total{" not in other.text(0, 0)  # every server counts for itself


def test_metrics_of_a_server(site):
    site.get("/api/search?text=red")
    answer = site.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = re.compile(r'(# (HELP|TYPE) .*|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+)')
    for one in answer.body.decode().splitlines():
        assert line.fullmatch(one), one
    assert b"wordreel_search_seconds_count 1" in answer.body


def test_tracks_in_memory_are_the_files(library):
    store = opened(library).store
    loaded = []

    def load(digest):
        loaded.append(digest)
        return store.track_files.load(digest)

    digests = list(store.track_files.all())
    total = sum(store.track_files.load(digest).values.nbytes for digest in digests)
    load_cached = cached_tracks(load, max_bytes=total - 1)
    for digest in digests * 2:
        np.testing.assert_array_equal(load_cached(digest).values, store.track_files.load(digest).values)
    assert len(loaded) > len(set(loaded)) == len(digests), "the cache is bounded"
    before = len(loaded)
    load_cached(digests[-1])
    assert len(loaded) == before, "the latest track is cached"


@pytest.mark.parametrize(
    ("host", "name", "known"),
    [
        ("127.0.0.1", "localhost", True),
        ("127.0.0.1", "192.168.1.5", False),
        ("0.0.0.0", "192.168.1.5", True),  # noqa: S104
        ("0.0.0.0", "evil.example", False),  # noqa: S104
        ("192.168.1.5", "192.168.1.5", True),
    ],
)
def test_known_hosts(host, name, known):
    assert Options(host=host).known_host(name) is known


def test_other_addresses_demand_a_token(tmp_path):
    command = [
        sys.executable,
        "-c",
        "from wordreel.cli import main; main()",
        "serve",
        "-L",
        str(tmp_path / "l"),
    ]
    refused = subprocess.run([*command, "--host", "0.0.0.0"], capture_output=True, timeout=60)  # noqa: S104
    assert refused.returncode == 1
    assert b"--new-token" in refused.stderr
    made = subprocess.run([*command, "--new-token"], capture_output=True, timeout=60, check=True)
    token = made.stdout.decode().strip()
    assert len(token) > 40
    assert token.encode() not in (tmp_path / "l" / "catalogue.sqlite").read_bytes()


def test_the_base_install_does_not_load_the_framework():
    code = "import sys, wordreel, wordreel.cli.app; print(list({'fastapi', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert json.loads(found.stdout) == []
