"""The documented API under generated requests: whatever is sent, the server answers, and not with a 5xx."""

import os
import subprocess
import sys

import pytest
from tests.serve.conftest import running

CHECKS = (
    "not_a_server_error",
    "content_type_conformance",
    "status_code_conformance",
    "response_schema_conformance",
)
EXAMPLES = os.environ.get("WORDREEL_FUZZ_EXAMPLES", "25")


@pytest.mark.slow
def test_schemathesis_finds_no_server_error(library, ready, tmp_path):
    pytest.importorskip("schemathesis")
    with running(library, roots=(ready[1],), timeout=20.0) as site:
        address = f"http://127.0.0.1:{site.port}"
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/openapi.json"),
                *("--checks", ",".join(CHECKS)),
                *("--max-examples", EXAMPLES, "--request-timeout", "15", "--seed", "1"),
                *("--exclude-path", "/api/login"),  # five tries, then the door is shut for a while
            ],
            capture_output=True,
            text=True,
            timeout=900,
            cwd=tmp_path,
        )
        assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-2000:]
        assert site.get("/healthz").status == 200
        assert 'status="5' not in site.get("/metrics").body.decode()
