"""A server of several processes: uvicorn's workers, over the same files, which each of them maps.

They share the listening socket, a scratch folder (`scratch`) and the library's catalogue. uvicorn replaces a
process that ends.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from pathlib import Path

import uvicorn
from pydantic import TypeAdapter
from starlette.types import ASGIApp

from wordreel.library import Library
from wordreel.media.sandbox import die_with_parent
from wordreel.runtime.store import WeightStore
from wordreel.serve.app import build_app, build_server, uvicorn_settings
from wordreel.serve.options import Options
from wordreel.serve.scratch import make_scratch
from wordreel.serve.service import Service

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
        """Open the library."""
        return Library(self.library, create=False, weights=WeightStore(self.weights), index=self.index)


def run_server(library: Library, index: str | None, options: Options) -> None:
    """Serve until interrupted, with as many processes as the options say."""
    if options.workers > 1:
        run_processes(library, index, options)
    else:
        build_server(Service(library, options)).run()


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
    """Return what this process is to serve."""
    return TypeAdapter(Served).validate_json(os.environ[ENVIRONMENT])


def process_app() -> ASGIApp:
    """Return the application of one process."""
    parent = parent_process()
    die_with_parent(None if parent is None else parent.pid)
    served = served_here()
    return build_app(Service(served.open(), served.options))


def free_port(host: str) -> int:
    """Return a port that nothing listens at."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
        port: int = found.getsockname()[1]
        return port
