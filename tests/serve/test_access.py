"""Who is let in, and to what."""

import re
import time

import pytest
from tests.serve.conftest import MARK, opened, running

from wordreel.errors import WordreelError
from wordreel.serve import tokens
from wordreel.serve.tokens import SESSION_SECONDS, Sessions

TOKEN = "a token for tests"  # noqa: S105
HASH = tokens.hash_token(TOKEN)


@pytest.fixture
def closed(library):
    with running(library, token=HASH) as made:
        yield made


def test_nobody_gets_in_without_the_token(closed):
    for path in ("/api/status", "/api/search?text=red", "/media/" + "0" * 64, "/metrics", "/api/jobs"):
        answer = closed.get(path)
        assert answer.status == 401
        assert answer.code == "login_needed"
    assert closed.ask("DELETE", "/api/videos/" + "0" * 64).status == 401
    for path in ("/healthz", "/api/openapi.json"):
        assert closed.get(path).status == 200
    assert closed.get("/api/status", Authorization="Bearer wrong").code == "wrong_token"
    assert closed.get("/api/status", Cookie="wordreel=" + "x" * 43).code == "login_needed"


def test_login_gives_a_cookie_that_logout_ends(closed):
    assert closed.post("/api/login", {"token": "wrong"}).code == "wrong_token"
    answer = closed.post("/api/login", {"token": TOKEN})
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    closed.headers = {"Cookie": cookie.partition(";")[0]}
    assert closed.get("/api/status").json["login"] == "token"
    assert closed.ask("PUT", "/api/settings", {}).code == "no_mark"  # CSRF
    assert closed.ask("PUT", "/api/settings", {}, MARK).status == 200
    assert closed.post("/api/logout", headers=MARK).status == 200
    assert closed.get("/api/status").code == "login_needed"


def test_scripts_send_the_token(closed):
    closed.headers = {"Authorization": f"Bearer {TOKEN}"}
    assert closed.get("/api/status").status == 200
    assert closed.ask("PUT", "/api/settings", {}).status == 200


def test_tokens_are_kept_hashed(tmp_path, library):
    from wordreel.catalogue.store import LibraryStore

    token = tokens.new_token()
    assert len(token) > 40
    for file in (None, tmp_path / "token"):
        with LibraryStore.open(library) as store:
            if file is None:
                assert tokens.load_token_hash(store, file) is None
            else:
                with pytest.raises(WordreelError, match="--new-token --token-file"):
                    tokens.load_token_hash(store, file)
            tokens.save_token_hash(store, file, tokens.hash_token(token))
            kept = tokens.load_token_hash(store, file)
        assert token not in kept
        check = tokens.TokenVerifier(kept)
        assert not check.is_cached(token)
        assert check.verify(token)
        assert check.is_cached(token)
        assert not check.verify(token + "x")
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    assert tokens.hash_token(token) != tokens.hash_token(token)
    with pytest.raises(WordreelError, match="new-token"):
        tokens.TokenVerifier("plain text")


def test_sessions_end(tmp_path):
    now = [time.time()]
    sessions = Sessions(tmp_path / "sessions", lambda: now[0])
    first, last = sessions.open(), sessions.open()
    other = Sessions(tmp_path / "sessions")  # in another process of the server
    assert all(each.valid(cookie) for each in (sessions, other) for cookie in (first, last))
    other.close(first)
    assert [sessions.valid(cookie) for cookie in (first, last, "../sessions", "")] == [
        False,
        True,
        False,
        False,
    ]
    now[0] += SESSION_SECONDS + 60
    assert not sessions.valid(last)


def test_foreign_pages_are_refused(site):
    host = f"127.0.0.1:{site.port}"
    own = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{site.port + 1}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert site.get("/api/search?text=red", **headers).code == "foreign_origin"
        assert site.ask("PUT", "/api/settings", {}, {**headers, **MARK}).code == "foreign_origin"
    assert site.ask("PUT", "/api/settings", {}, own).code == "no_mark"
    assert site.ask("PUT", "/api/settings", {}, {**own, **MARK}).status == 200
    assert site.ask("OPTIONS", "/api/search", headers={"Origin": "http://evil.example"}).status == 403


def test_names_that_are_not_ours_are_refused(site):
    for host in (
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "user@127.0.0.1",
        "",
        "[",
        "10.0.0.1",
    ):
        assert site.get("/api/status", Host=host).code == "unknown_host", host
    for host in ("localhost", f"127.0.0.1:{site.port}", "LOCALHOST:1", "[::1]:80"):
        assert site.get("/api/status", Host=host).status == 200, host


def test_other_names_can_be_allowed(library):
    with running(library, names=("films.example",)) as site:
        assert site.get("/api/status", Host="films.example").status == 200
        assert site.get("/api/status", Host="other.example").status == 403


def test_read_only_changes_nothing(library, ready):
    with running(library, read_only=True, roots=(ready[1],)) as site:
        content = site.get("/api/videos").json["items"][0]["content"]
        assert site.get("/api/status").json["read_only"]
        assert site.post("/api/search", {"text": "red"}).status == 200
        assert site.post(f"/api/videos/{content}/captions", {"captions": ["red"]}).status == 200
        picture = site.get(f"/api/thumb/{content}").body
        assert site.post("/api/uploads?purpose=query", picture).status == 202
        for method, path, body in (
            ("DELETE", f"/api/videos/{content}", None),
            ("POST", "/api/folders", {"path": str(ready[1])}),
            ("POST", "/api/banks", {"name": "x"}),
            ("DELETE", "/api/banks/x", None),
            ("PUT", "/api/settings", {"log_queries": True}),
            ("DELETE", "/api/jobs/1", None),
            ("POST", "/api/uploads", picture),
        ):
            assert site.ask(method, path, body).code == "read_only", path
        assert not (library / "uploads").exists()


def contents_of(folder):
    """Every file of a library and its bytes, without what can be rebuilt and SQLite's shared memory."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".sqlite-shm" and folder / "cache" / "thumbs" not in path.parents
    }


def test_read_only_refuses_every_change_of_every_route(library, ready):
    """Every route of the API with every method that can change something."""
    opened(library).banks.build("captions", ["red", "green", "blue dogs"], "a test")
    allowed = {
        ("POST", "/api/search"),
        ("POST", "/api/login"),
        ("POST", "/api/logout"),
        ("POST", "/api/uploads"),
        ("POST", "/api/videos/{content}/captions"),
    }
    with running(library, read_only=True, roots=(ready[1],)) as site:
        content = site.get("/api/videos").json["items"][0]["content"]
        before = contents_of(library)
        routes = [
            *site.get("/api/openapi.json").json["paths"],
            "/",
            "/nowhere",
            "/api/banks/captions/captions",
        ]
        assert len(routes) > 20
        for route in routes:
            values = {"{content}": content, "{name}": "captions", "{number}": "1"}
            path = re.sub(r"\{\w+\}", lambda match: values[match.group()], route)  # noqa: B023
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                if (method, route) not in allowed:
                    assert site.ask(method, path, {}).code == "read_only", (method, path)
        picture = site.get(f"/api/thumb/{content}").body
        upload = site.post("/api/uploads?purpose=query", picture).json["upload"]
        assert site.get(f"/api/search?image={upload['id']}").status == 200
        assert contents_of(library) == before
        held = site.service.uploads.queries
        assert list(held.iterdir())
        large = site.post("/api/uploads?purpose=query", bytes(65 * 2**20))
        assert large.code == "too_large"
    assert not held.exists()


def test_headers_of_every_answer(site):
    for path in ("/", "/api/status", "/nowhere", "/api/search", "/healthz"):
        headers = site.get(path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers
