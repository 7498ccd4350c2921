"""Counters and histograms in the text format that Prometheus reads."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Everything that is counted. Gauges are asked for their value when the page is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, Labels], float] = {}
        self._histograms: dict[tuple[str, Labels], list[float]] = {}
        self._about: dict[str, tuple[str, str, tuple[float, ...]]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}

    def describe(self, name: str, kind: str, text: str, bounds: tuple[float, ...] = BOUNDS) -> None:
        self._about[name] = (kind, text, bounds)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        self.describe(name, "gauge", text)
        self._gauges[name] = value

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0.0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a value into its histogram."""
        key = (name, tuple(sorted(labels.items())))
        bounds = self._about[name][2]
        with self._lock:
            held = self._histograms.setdefault(key, [0.0] * (len(bounds) + 2))
            held[bisect_left(bounds, value)] += 1
            held[-1] += value

    def text(self) -> str:
        """All of it, one family after the other."""
        with self._lock:
            counts = dict(self._counts)
            histograms = {key: list(held) for key, held in self._histograms.items()}
        lines: list[str] = []
        for name, (kind, about, bounds) in self._about.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            if kind == "gauge":
                lines.append(f"{name} {self._gauges[name]():g}")
            lines += [f"{name}{_shown(at)} {value:g}" for (of, at), value in counts.items() if of == name]
            for (of, at), held in histograms.items():
                if of == name:
                    lines += _histogram(name, at, held, bounds)
        return "\n".join(lines) + "\n"


def standard() -> Metrics:
    """The metrics of a server."""
    made = Metrics()
    made.describe("wordreel_requests_total", "counter", "Requests by route, method and status.")
    made.describe("wordreel_request_seconds", "histogram", "Time until a response was complete, by route.")
    made.describe("wordreel_encode_seconds", "histogram", "Time a search waited for its words' embedding.")
    made.describe("wordreel_encode_batch", "histogram", "Texts encoded together.", SIZES)
    made.describe("wordreel_encode_cached_total", "counter", "Texts whose embedding was known.")
    made.describe("wordreel_search_seconds", "histogram", "Time a search took after its embedding.")
    made.describe("wordreel_refused_total", "counter", "Requests turned away, by reason.")
    made.describe("wordreel_jobs_total", "counter", "JobQueue that ended, by kind and state.")
    return made


def _histogram(name: str, labels: Labels, held: list[float], bounds: Iterable[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, number in zip((*(f"{b:g}" for b in bounds), "+Inf"), held, strict=False):
        total += number
        lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total:g}")
    return [*lines, f"{name}_sum{_shown(labels)} {held[-1]:.6f}", f"{name}_count{_shown(labels)} {total:g}"]


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    escaped = ((k, v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for k, v in labels)
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped) + "}"
