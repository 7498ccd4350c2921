"""Answers to the latest searches, for some seconds.

People page back and forth, and many ask the same. An answer is that of one state of the library; it is
forgotten when a request changes something, and after `SECONDS`, because other programs write as well: a
server looks at what they wrote as seldom.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from wordreel.serve.search_answer import SearchAnswer
from wordreel.util.lru_cache import LRUCache

SECONDS = 15.0
CACHED = 256  # answers, of 20 KB each for a page of hits
READS = ("GET", "HEAD", "OPTIONS")
QUESTIONS = ("/api/search",)  # that are posted and change nothing


class AnswerCache:
    """Answers by the state of the library and the question. Threads share it.

    It does not keep a state alive: that holds the model and the index.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answers = LRUCache[tuple[int, str], tuple[float, weakref.ref[object], SearchAnswer]](CACHED)

    def get(self, state: object, question: str) -> SearchAnswer | None:
        found = self._answers.get((id(state), question))
        if found is None or found[1]() is not state or self._clock() - found[0] > SECONDS:
            return None
        return found[2]

    def put(self, state: object, question: str, answer: SearchAnswer) -> None:
        self._answers.put((id(state), question), (self._clock(), weakref.ref(state), answer))

    def clear(self) -> None:
        self._answers = LRUCache(CACHED)


class ForgetAnswers:
    """Forgets all answers before and after each request that may change something."""

    def __init__(self, app: ASGIApp, answers: AnswerCache) -> None:
        self._app, self._answers = app, answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in READS or scope["path"] in QUESTIONS:
            await self._app(scope, receive, send)
            return
        self._answers.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._answers.clear()
