"""The server's counters and histograms, for Prometheus."""

from __future__ import annotations

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client.multiprocess import MultiProcessCollector

__all__ = ["CONTENT_TYPE", "Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, of no use here


class Metrics:
    """The metrics of one server, in a registry of their own: tests run several servers in one process.

    A server of several processes sets $PROMETHEUS_MULTIPROC_DIR before this module is imported: each process
    then answers with the counts of all.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter(
            "wordreel_requests_total", "Requests by route, method and status.", "route", "method", "status"
        )
        self.request_seconds = self._histogram(
            "wordreel_request_seconds", "Time until a response was complete, by route.", SECONDS, "route"
        )
        self.encode_seconds = self._histogram(
            "wordreel_encode_seconds", "Time a search waited for the embedding of its text.", SECONDS
        )
        self.search_seconds = self._histogram(
            "wordreel_search_seconds", "Time a search took after its embedding.", SECONDS
        )
        self.refused = self._counter("wordreel_refused_total", "Requests refused, by reason.", "reason")
        self.jobs = self._counter(
            "wordreel_jobs_total", "Jobs that ended, by kind and state.", "kind", "state"
        )
        self.jobs_waiting = self._gauge("wordreel_jobs_waiting", "Jobs that wait or run.")
        self.items = self._gauge("wordreel_items", "Clips and videos in the index.")

    def text(self, jobs_waiting: int, items: int) -> bytes:
        """Return all metrics in the text format."""
        self.jobs_waiting.set(jobs_waiting)
        self.items.set(items)
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self.registry)
        every = CollectorRegistry()
        MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry, multiprocess_mode="mostrecent")

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)
