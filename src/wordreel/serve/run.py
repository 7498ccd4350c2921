"""Start a server and stay until it is told to stop."""

from __future__ import annotations

import uvicorn

from wordreel.serve.app import build
from wordreel.serve.options import Options
from wordreel.serve.service import Service
from wordreel.serve.slow_clients import TimeoutProtocol

MAX_CONNECTIONS = 512
KEEP_ALIVE = 15  # seconds


def server(service: Service, options: Options) -> uvicorn.Server:
    """A uvicorn server for a service, not yet started."""
    config = uvicorn.Config(
        build(service),
        host=options.host,
        port=options.port,
        http=TimeoutProtocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=5,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    return uvicorn.Server(config)
