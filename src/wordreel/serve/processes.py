"""A server of several processes: uvicorn's workers, over the same files, which each of them maps.

They share the listening socket, a scratch folder (`scratch`) and the library's catalogue. uvicorn replaces a
process that ends.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path

import uvicorn
from pydantic import TypeAdapter
from starlette.types import ASGIApp

from wordreel.library import Library
from wordreel.serve.app import build_app, uvicorn_settings
from wordreel.serve.options import Options
from wordreel.serve.scratch import make_scratch

APP = "wordreel.serve.processes:process_app"
ENVIRONMENT = "WORDREEL_SERVER"  # what the processes serve, as JSON
START_SECONDS = 120  # until a process that does not answer uvicorn is replaced


@dataclass(frozen=True)
class Served:
    """What each process serves."""

    library: Path
    weights: Path
    index: str | None
    options: Options

    def open(self) -> Library:
        from wordreel.runtime.store import WeightStore

        return Library(self.library, create=False, weights=WeightStore(self.weights), index=self.index)


def run_processes(library: Library, index: str | None, options: Options) -> None:
    """Serve with `options.workers` processes until interrupted."""
    with make_scratch() as scratch:
        metrics = Path(scratch, "metrics")
        metrics.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
        served = Served(library.path, library.weights.root, index, replace(options, scratch=Path(scratch)))
        os.environ[ENVIRONMENT] = TypeAdapter(Served).dump_json(served).decode()
        uvicorn.run(
            APP,
            factory=True,
            workers=options.workers,
            timeout_worker_healthcheck=START_SECONDS,
            **uvicorn_settings(options),
        )


def served_here() -> Served:
    """What this process is to serve."""
    return TypeAdapter(Served).validate_json(os.environ[ENVIRONMENT])


def process_app() -> ASGIApp:
    """The application of one process."""
    from wordreel.serve.service import Service

    stop_with_parent()
    served = served_here()
    return build_app(Service(served.open(), served.options))


def stop_with_parent() -> None:
    """Stop this process when the one that started it is gone, even if it was killed."""
    parent = parent_process()

    def watch() -> None:
        assert parent is not None  # noqa: S101
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=watch, name="parent", daemon=True).start()


def free_port(host: str) -> int:
    """A port that nothing listens at."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
        port: int = found.getsockname()[1]
        return port
