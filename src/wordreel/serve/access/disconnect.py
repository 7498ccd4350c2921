"""Stop answering a client that has gone: what it waited for in a queue is dropped."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wordreel.serve.problems import Problem

QUERY_POSTS = re.compile(r"/api/(search|videos/[^/]+/captions)")
"""POST requests that only read: their query does not fit into a URL."""


async def run_until_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application; cancel it when the client of a reading request disconnects.

    Requests that change something run to their end: half a change is worse than an unread answer.
    """
    if not only_reads(scope["method"], scope["path"]):
        await app(scope, receive, send)
        return
    content = b""
    if scope["method"] == "POST":
        received = await _read_body(receive)
        if received is None:
            return
        content = received
    gone, completed = asyncio.Event(), False
    body: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive_once() -> Message:
        if body:
            return body.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send_and_note(message: Message) -> None:
        nonlocal completed
        completed = message["type"] == "http.response.body" and not message.get("more_body")
        await send(message)

    answering = asyncio.ensure_future(app(scope, receive_once, send_and_note))

    async def watch() -> None:
        with suppress(Problem):  # a body that nobody reads may be as slow as it likes
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            if not completed:
                answering.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        await answering
    except asyncio.CancelledError:
        if not gone.is_set():  # the server itself stops
            answering.cancel()
            raise
    finally:
        watching.cancel()


def only_reads(method: str, path: str) -> bool:
    """Whether a request of the API changes nothing.

    >>> only_reads("GET", "/api/jobs"), only_reads("POST", "/api/search"), only_reads("POST", "/api/folders")
    (True, True, False)
    """
    if method == "POST":
        return QUERY_POSTS.fullmatch(path) is not None
    return method in ("GET", "HEAD") and path.startswith("/api/")


async def _read_body(receive: Receive) -> bytes | None:
    """A whole body; None if the client disconnects before its end. `receive` bounds its size and time."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
