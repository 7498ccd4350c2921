"""Stop answering a client that has gone: what it waited for in a queue is dropped."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wordreel.serve.problems import Problem


async def run_until_disconnect(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application; cancel it when the client of a reading request disconnects.

    Requests that change something run to their end: half a change is worse than an unread answer.
    """
    if not scope["path"].startswith("/api/") or scope["method"] not in ("GET", "HEAD"):
        await app(scope, receive, send)
        return
    gone, completed = asyncio.Event(), False
    body: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]  # a GET has none

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
