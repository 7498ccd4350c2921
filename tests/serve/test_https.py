"""Https with a certificate of one's own, and behind a proxy that does it."""

import http.client
import json
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress

import pytest
from tests.serve.conftest import running
from tests.serve.test_access import HASH, TOKEN
from typer.testing import CliRunner

from wordreel.cli.app import app


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """(certificate, key) of localhost."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    home = tmp_path_factory.mktemp("https")
    made = (home / "certificate.pem", home / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-out", str(made[0]), "-keyout", str(made[1])),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return made


def test_https(library, certificate):
    with running(library, token=HASH, certificate=certificate[0], key=certificate[1]) as site:
        trusting = ssl.create_default_context(cafile=str(certificate[0]))

        def ask(method, path, body=None, **headers):
            connection = http.client.HTTPSConnection("localhost", site.port, timeout=60, context=trusting)
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            return answer, answer.read()

        kind = {"Content-Type": "application/json"}
        answer, _ = ask("POST", "/api/login", {"token": TOKEN}, **kind)
        assert answer.status == 200
        cookie = answer.headers["set-cookie"]
        for word in ("Secure", "HttpOnly", "SameSite=strict"):
            assert word in cookie
        answer, body = ask("GET", "/api/search?text=red", Cookie=cookie.partition(";")[0])
        assert len(json.loads(body)["hits"]) == 4
        assert ask("GET", "/api/status", Origin=f"http://localhost:{site.port}")[0].status == 401
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as plain:  # without TLS
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with suppress(ConnectionResetError):
                assert b"200" not in plain.recv(4096)


@pytest.mark.parametrize(
    ("said", "secure"),
    [
        ({}, False),
        ({"X-Forwarded-Proto": "https", "Forwarded": "proto=https"}, False),  # anybody can say that
        ({"Origin": "https://films.example", "Host": "films.example", "X-Wordreel": "1"}, True),
        ({"Origin": "http://films.example", "Host": "films.example", "X-Wordreel": "1"}, False),
    ],
)
def test_cookies_are_secure_where_the_page_is(library, said, secure):
    """The browser says how it came; behind a proxy that speaks https, the page's origin does."""
    with running(library, token=HASH, names=("films.example",)) as site:
        answer = site.post("/api/login", {"token": TOKEN}, said)
        assert answer.status == 200
        assert ("Secure" in answer.headers["set-cookie"]) == secure


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--key", "KEY"], "--certificate"),
        (["--certificate", "nowhere.pem"], "nowhere.pem"),
        (["--certificate", "KEY", "--key", "KEY"], "PEM"),
    ],
)
def test_a_certificate_that_does_not_fit_is_told_at_once(library, certificate, given, said):
    """Serving without encryption in its place would be worse than not serving."""
    words = [str(certificate[1]) if word == "KEY" else word for word in given]
    found = CliRunner().invoke(app, ["serve", "-L", str(library), "--port", "0", *words])
    assert found.exit_code != 0
    assert said in str(found.exception) + found.output
