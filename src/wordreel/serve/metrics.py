"""The server's counters and histograms, for Prometheus."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "Metrics"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, of no use here


class Metrics:
    """The metrics of one server, in a registry of their own: tests run several servers in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter(
            "wordreel_requests_total", "Requests by route, method and status.", "route", "method", "status"
        )
        self.request_seconds = self._histogram(
            "wordreel_request_seconds", "Time until a response was complete, by route.", SECONDS, "route"
        )
        self.search_seconds = self._histogram("wordreel_search_seconds", "Time a search took.", SECONDS)
        self.refused = self._counter("wordreel_refused_total", "Requests refused, by reason.", "reason")
        self.jobs = self._counter(
            "wordreel_jobs_total", "Jobs that ended, by kind and state.", "kind", "state"
        )
        self.jobs_waiting = Gauge(
            "wordreel_jobs_waiting", "Jobs that wait or run.", registry=self.registry
        )  # the service sets these two functions
        self.items = Gauge("wordreel_items", "Clips and videos in the index.", registry=self.registry)

    def text(self) -> bytes:
        """All metrics in the text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)
