"""A server of two processes, with the model of the tests: `-m tests.serve.colour_process LIBRARY PORT`."""

import sys

from tests.serve.conftest import ThreadWork, opened

from wordreel.media.sandbox import die_with_parent
from wordreel.serve import processes
from wordreel.serve.app import build_app
from wordreel.serve.options import Options
from wordreel.serve.service import Service


def app():
    """The application of one process."""
    die_with_parent()
    served = processes.served_here()
    library = opened(served.library)
    return build_app(Service(library, served.options, job_runner=ThreadWork(library.path, library.model)))


if __name__ == "__main__":
    processes.APP = "tests.serve.colour_process:app"
    processes.run_processes(opened(sys.argv[1]), None, Options(port=int(sys.argv[2]), workers=2))
