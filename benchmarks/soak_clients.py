"""Clients of the soak: they search, play, add and remove until they are stopped."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from soak_server import JOB, VIDEOS, Server, clip

from wordreel.banks.sources import everyday_queries

LEFT_ADDED = 4  # clips that stay before the oldest is removed


@dataclass
class Load:
    """What the clients did: latencies by kind and time, errors by kind, contents that were added."""

    began: float = field(default_factory=time.monotonic)
    stop: threading.Event = field(default_factory=threading.Event)
    took: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # seconds since start, latency
    errors: Counter[str] = field(default_factory=Counter)
    added: list[tuple[str, Path]] = field(default_factory=list)
    removed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, kind: str, work: Callable[[], str | None]) -> None:
        """One request or job; `work` returns what was wrong."""
        began = time.monotonic()
        try:
            wrong = work()
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        ended = time.monotonic()
        with self.lock:
            if wrong is None:
                self.took.setdefault(kind, []).append((ended - self.began, ended - began))
            else:
                self.errors[f"{kind}: {wrong[:200]}"] += 1


def search_clients(server: Server, load: Load, count: int) -> list[threading.Thread]:
    texts = everyday_queries()

    def search(seed: int) -> None:
        rng = random.Random(seed)
        while not load.stop.is_set():
            text = quote(
                f"{rng.choice(texts)} {rng.choice(texts)}" if rng.random() < 0.5 else rng.choice(texts)
            )
            load.run("search", partial(_ask, server, "GET", f"/api/search?text={text}&limit=10"))

    return [threading.Thread(target=search, args=(n,), daemon=True) for n in range(count)]


def playback_clients(
    server: Server, load: Load, files: dict[str, Path], count: int
) -> list[threading.Thread]:
    def play(seed: int) -> None:
        rng = random.Random(seed)
        while not load.stop.is_set():
            content = rng.choice(list(files))
            data = files[content].read_bytes()
            start = rng.randrange(len(data))
            end = min(len(data) - 1, start + rng.randrange(1, 1 << 18))

            def ranged(
                content: str = content, want: bytes = data[start : end + 1], span: str = f"{start}-{end}"
            ) -> str | None:
                status, body = server.ask("GET", f"/media/{content}", Range=f"bytes={span}")
                return (
                    None if (status, body) == (206, want) else f"{status}, {len(body)} of {len(want)} bytes"
                )

            load.run("playback", ranged)
            if rng.random() < 0.2:
                load.run(
                    "thumbnail",
                    partial(_ask, server, "GET", f"/api/thumb/{content}?t=1"),
                )

    return [threading.Thread(target=play, args=(n,), daemon=True) for n in range(count)]


def writer(server: Server, load: Load, media: Path) -> threading.Thread:
    """Adds clip after clip and removes the oldest of too many."""

    def write() -> None:
        number = 0
        while not load.stop.is_set():
            number += 1
            path = clip(media / f"added{number}.mp4", 10_000 + number)
            load.run("add", partial(add, server, load, path))
            if len(load.added) > LEFT_ADDED:
                content, old = load.added[0]
                load.run("remove", partial(_ask, server, "DELETE", f"/api/videos/{content}"))
                old.unlink()
                load.added.pop(0)
                load.removed += 1

    return threading.Thread(target=write, daemon=True)


def add(server: Server, load: Load, path: Path) -> str | None:
    job = server.json("POST", "/api/folders", {"path": str(path)})["job"]
    until = time.monotonic() + JOB
    while (state := server.json("GET", f"/api/jobs/{job['id']}")["job"])["state"] in ("queued", "running"):
        if load.stop.is_set() or time.monotonic() > until:
            return None if load.stop.is_set() else "not done in time"
        time.sleep(0.2)
    found = [item for item in server.json("GET", VIDEOS)["items"] if item["name"] == path.name]
    if state["state"] != "done" or len(found) != 1:
        return f"the job ended as {state['state']}, and {len(found)} videos are there"
    load.added.append((found[0]["content"], path))
    return None


def _ask(server: Server, method: str, address: str) -> str | None:
    return _status(server.ask(method, address))


def _status(answer: tuple[int, bytes]) -> str | None:
    return None if answer[0] == 200 else f"{answer[0]} {answer[1][:100]!r}"
