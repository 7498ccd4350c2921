"""The guard in front of the application: checks every request before anything else, and adds headers."""

from __future__ import annotations

import re
import time
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wordreel.serve.metrics import Metrics
from wordreel.serve.options import Options
from wordreel.serve.problems import Problem, read_only, too_large
from wordreel.serve.tokens import COOKIE, Sessions, TokenVerifier

SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = ("/healthz", "/api/login", "/api/openapi.json")  # without login
UPLOADS = "/api/uploads"
READ_ONLY_POSTS = re.compile(r"/api/(search|login|logout|uploads|videos/[^/]+/captions)")
"""What a read-only server accepts: queries, sessions, and uploads, where all but queries are refused."""
MARK = "x-wordreel"
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; style-src 'self'; "
    "script-src 'self'; connect-src 'self'; object-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer" a form of our own page would have no origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


class Guard:
    """Hosts, origins, login, read-only and sizes; then the application. Responses get security headers."""

    def __init__(self, app: ASGIApp, options: Options, sessions: Sessions, metrics: Metrics) -> None:
        self._app, self._options, self._sessions, self._metrics = app, options, sessions, metrics
        self.verifier = None if options.token is None else TokenVerifier(options.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then let the application answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["client"] = scope["client"][0] if scope.get("client") else "local"
        began = time.perf_counter()
        status = 0  # of the response, once it has started
        method, path = str(scope["method"]), str(scope["path"])
        inner = scope
        if method == "HEAD" and not path.startswith("/media/"):
            inner = {**scope, "method": "GET"}  # the server sends the head only

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if path.startswith("/api/"):  # not cached unless the route says so
                    headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            most = await self._check(scope)
            await self._app(inner, limited_body(receive, most), send_with_headers)
        except Problem as problem:
            if status:
                raise
            self._metrics.refused.labels(problem.code).inc()
            await problem.response()(scope, receive, send_with_headers)
        finally:
            route = getattr(inner.get("route"), "path", "other")
            known_method = method if method in METHODS else "other"
            self._metrics.requests.labels(route, known_method, str(status or 500)).inc()
            self._metrics.request_seconds.labels(route).observe(time.perf_counter() - began)

    async def _check(self, scope: Scope) -> int:
        """Return how large the body may be; raise a `Problem` where the request is refused."""
        headers, path, method = Headers(scope=scope), str(scope["path"]), str(scope["method"])
        self._check_host(headers)
        self._check_origin(headers, path, method)
        await self._check_login(headers, path, method)
        if method not in SAFE:
            self._check_change(path, method, headers)
        most = self._options.max_upload if path == UPLOADS else self._options.max_json
        if int(headers.get("content-length", "0")) > most:
            raise too_large(most)
        return most

    def _check_host(self, headers: Headers) -> None:
        if len(headers.getlist("host")) > 1:
            raise Problem(400, "bad_request", "a request has one Host header")
        name = host_name(headers.get("host", ""))
        if not self._options.known_host(name):
            raise Problem(
                403,
                "unknown_host",
                "this server is not known under that name; its owner can allow the name when starting it",
            )

    def _check_origin(self, headers: Headers, path: str, method: str) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        guarded = path.startswith(("/api/", "/media/")) or method not in SAFE
        foreign = origin is not None and not same_origin(origin, headers.get("host", ""))
        if foreign or (guarded and site not in ("same-origin", "none")):
            raise Problem(403, "foreign_origin", "pages of other sites may not use this server")
        if site == "none" and method not in SAFE:
            raise Problem(403, "foreign_origin", "only the page itself may change something")

    async def _check_login(self, headers: Headers, path: str, method: str) -> None:
        browser = "origin" in headers or "sec-fetch-site" in headers
        if self.verifier is not None and needs_login(path):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            if scheme.lower() == "bearer":
                known = self.verifier.is_cached(token)
                if not known and not await anyio.to_thread.run_sync(self.verifier.verify, token):
                    raise Problem(401, "wrong_token", "that is not the token of this server")
                return
            cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
            if not self._sessions.valid(cookie):
                raise Problem(
                    401,
                    "login_needed",
                    "log in with the token of this server",
                    headers={"www-authenticate": "Bearer"},
                )
            browser = True
        if browser and method not in SAFE and headers.get(MARK) != "1":
            raise Problem(403, "no_mark", "changes need the header X-Wordreel: 1")

    def _check_change(self, path: str, method: str, headers: Headers) -> None:
        if self._options.read_only and not (method == "POST" and READ_ONLY_POSTS.fullmatch(path)):
            raise read_only()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and path != UPLOADS and kind != "application/json":
            raise Problem(415, "wrong_type", "send the body as application/json")


def limited_body(receive: Receive, most: int) -> Receive:
    """Return `receive` that refuses a body of more than so many bytes while it arrives."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise too_large(most)
        return message

    return limited


def needs_login(path: str) -> bool:
    """Return whether a path needs a login: the page's own files do not, to have something to log in with."""
    return path not in OPEN and (path.startswith(("/api/", "/media/")) or path in ("/api", "/metrics"))


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("Localhost:8010"), host_name("[::1]:80"), host_name("::1")
    ('localhost', '::1', '')
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").lower() if "@" not in host else ""
    except ValueError:
        return ""


def same_origin(origin: str, host: str) -> bool:
    """Return whether a page's origin is the server that it asks."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
