"""The page with canned answers: for states that a real library reaches only with effort, and for drawing it.

python tests/serve/fake_server.py [port] [full|empty|shown|broken|stale|working]
"""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import av
import cv2
import numpy as np
from numpy.typing import NDArray

import wordreel

PAGE = Path(wordreel.__file__).parent / "serve" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; style-src 'self'; "
    "script-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
NAMES = ("harbour at dawn.mp4", "birthday 2019.mov", "street.mp4", "lecture.mp4", "beach.jpg", "song.mp3")
SECONDS = 20.0
LOST = "f" * 64  # a video that is no longer in the library
STALE = (
    "all 240 moments are not yet prepared for the model 'joint'; the owner of the library can prepare them"
)
SAID = (
    "Good morning to all of you.",
    "Today we go out with the red boat.",
    "Mind the rope, please.",
    "There!",
)


def kind(number: int) -> str:
    return {"jpg": "image", "mp3": "audio"}.get(NAMES[number % len(NAMES)].split(".")[-1], "video")


def file(number: int) -> dict[str, Any]:
    name = NAMES[number % len(NAMES)]
    name = name if number < len(NAMES) else f"{number} {name}"
    return {
        "content": f"{number:064x}",
        "path": f"/home/me/Videos/{name}",
        "name": name,
        "kind": kind(number),
        "duration": 0.0 if kind(number) == "image" else SECONDS,
        "added_at": 1_750_000_000.0 + 86_400 * number,
        "analysis": "quick" if number % 16 == 1 else "thorough",
        "state": ("ready", "quick", "preparing", "missing")[number % 4] if number % 16 < 4 else "ready",
    }


def hit(number: int, rank: int, then: bool = False) -> dict[str, Any]:
    about = file(number)
    start = 0.0 if about["kind"] == "image" else float(2 + number % 7)
    end = 0.0 if about["kind"] == "image" else start + 4
    moment = f"start={start}&end={end}"
    made = {
        **about,
        "rank": rank,
        "score": 0.61 - 0.03 * rank,
        "confidence": max(0.02, 0.88 - 0.09 * rank),
        "norm": "none",
        "start": start,
        "end": end,
        "why": [
            {"expert": "ocr words", "share": 0.3, "what": "“RED BOAT”", "at": [start, start + 2]},
            {"expert": "seen", "share": 0.18, "what": "speedboat", "at": None},
            {"expert": "speech", "share": 0.08, "what": "“the red boat”", "at": [6.0, 9.0]},
        ],
        "weights": {"seen": 0.8, "speech": 0.08, "ocr": 0.08, "sound": 0.04},
        "thumb": f"/api/thumb/{about['content']}?t={start}",
        "preview": f"/api/preview/{about['content']}?{moment}",
        "media": f"/media/{about['content']}",
    }
    if then:
        made["then"] = {"start": start + 8, "end": start + 11, "score": 0.4}
    return made


@cache
def picture(number: int, t: float) -> bytes:
    return bytes(cv2.imencode(".jpg", landscape(number, t))[1])


def landscape(number: int, t: float) -> NDArray[np.uint8]:
    """One of its own for every file and second."""
    rng = np.random.default_rng(number)
    sky, land = rng.integers(60, 230, 3), rng.integers(20, 140, 3)
    shade = np.linspace(0.6, 1.1, 180)[:, None, None]
    drawn = np.clip(np.broadcast_to(sky * shade, (180, 320, 3)), 0, 255).astype(np.uint8).copy()
    hills = (120 + 18 * np.sin(np.arange(320) / (20 + 4 * number) + number)).astype(int)
    drawn[np.arange(180)[:, None] >= hills] = land
    cv2.circle(drawn, (int(40 + 12 * t) % 320, 50), 18, (90, 200, 250), -1, cv2.LINE_AA)
    return drawn


@cache
def film() -> bytes:
    """Encoded before a server starts: a browser that waits for it would ask again, and encode it twice."""
    held = io.BytesIO()
    with av.open(held, "w", format="webm") as out:
        stream = out.add_stream("libvpx", rate=4, options={"deadline": "realtime", "cpu-used": "8"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        for n in range(int(SECONDS * 4)):
            image = landscape(1, n / 4)[::2, ::2].copy()
            out.mux(stream.encode(av.VideoFrame.from_ndarray(image, "bgr24")))
        out.mux(stream.encode())
    return held.getvalue()


def details(number: int) -> dict[str, Any]:
    words = [
        {"expert": "speech", "text": text, "start": 1.0 + 4 * n, "end": 4.0 + 4 * n}
        for n, text in enumerate(SAID)
    ]
    shown = {"expert": "ocr", "text": "RED BOAT", "start": 6.0, "end": 12.0}
    clips = [{"start": 0.0, "end": 8.0}, {"start": 8.0, "end": SECONDS}]
    seen = {"name": "appearance", "labels": ["speedboat", "pier"]}
    shape = {"width": 160, "height": 90}
    return {**file(number), **shape, "clips": clips, "experts": [seen], "words": [*words, shown]}


def face(person: int, number: int) -> dict[str, Any]:
    """A look at somebody."""
    content, start = f"{number:064x}", float(2 + person)
    thumb = f"/api/thumb/{content}?t={start}"
    return {"id": 10 * person + number, "content": content, "start": start, "end": start + 3, "thumb": thumb}


def job() -> dict[str, Any]:
    """A folder that is being added."""
    progress = {
        "step": "files",
        "analysis": "quick",
        "done": 0,
        "total": 38,
        "fraction": 0.02,
        "seconds_left": 95.0,
        "current": ["harbour at dawn.mp4", "street.mp4"],
    }
    facts = {"id": 7, "kind": "add", "title": "/home/me/Videos", "state": "running", "progress": progress}
    return {**facts, "report": None, "error": None}


def folder(path: str | None) -> dict[str, Any]:
    """Two levels of folders."""
    if path is None:
        roots = [{"path": "/home/me/Videos", "name": "/home/me/Videos"}]
        return {"path": None, "parent": None, "folders": roots, "files": 0}
    if path == "/home/me/Videos":
        inside = [{"path": f"/home/me/Videos/{name}", "name": name} for name in ("2023", "2024")]
        return {"path": path, "parent": None, "folders": inside, "files": 3}
    return {"path": path, "parent": "/home/me/Videos", "folders": [], "files": 12}


def models() -> list[dict[str, Any]]:
    def row(name: str, kind: str, download: int = 0, **more: Any) -> dict[str, Any]:
        facts = {"title": f"The {name}", "in_use": False, "licence": "MIT", "speed": "fast"}
        return {"key": name, "name": name, "kind": kind, "download": download, **facts, **more}

    return [
        row("joint", "built-in", in_use=True),
        row("mine", "trained"),
        row("clip", "backbone", 605 * 10**6),
    ]


def hubness() -> dict[str, Any]:
    before = [700, 400, 220, 130, 80, 40, 25, 14, 9, 6, 4, 3, 2, 2, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    after = [420, 520, 330, 180, 90, 40, 18, 8, 4, 2, 1, 1]
    hubs = [
        {
            "content": f"{n:064x}",
            "kind": "video",
            "name": NAMES[n],
            "thumb": f"/api/thumb/{n:064x}?t=3",
            "count_before": 24 - 3 * n,
            "count_after": 9 - n,
        }
        for n in range(4)
    ]
    return {
        "k": 10,
        "bank": "everyday",
        "queries": 2000,
        "videos": sum(before),
        "norm": "dis",
        "note": "",
        "edges": list(range(len(before))),
        "before": {"skewness": 3.91, "largest": 24, "antihub_occurrence": 0.42, "histogram": before},
        "after": {
            "skewness": 1.2,
            "largest": 11,
            "antihub_occurrence": 0.26,
            "histogram": [*after, *[0] * 13],
        },
        "hubs": hubs,
    }


class Fake:
    """What the server says; `mood` is one of "full", "empty", "shown" (empty and for reading only), "broken",
    "stale" (nothing is prepared, and for reading only), "working" (a folder is being added)."""

    def __init__(self, mood: str = "full") -> None:
        self.mood = mood
        self.files = 0 if mood in ("empty", "shown") else 60
        self.asked: list[dict[str, Any]] = []
        self.watched: list[str] = []
        self.paused = False
        self.annotations: list[dict[str, Any]] = []
        self.saved: dict[str, Any] = {}
        self.people: dict[int, str] | None = None  # None: not looked for
        self.slow: set[str] = set()  # addresses that are answered once they are taken out again
        self.lost: dict[str, str] = {}  # addresses of files that are gone, and how
        self.unplayable: set[str] = set()  # addresses of files in a format that no browser knows
        self.working = mood == "working"

    def answer(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        if self.mood == "broken" and path == "/api/search":
            message = "the index is being rebuilt; try again in a minute"
            return 503, {"error": {"code": "busy", "message": message, "field": None}}
        if self.mood == "stale" and path == "/api/search":
            return 409, {"error": {"code": "not_embedded", "message": STALE, "field": None}}
        parts = path.split("/")[2:]
        match parts:
            case ["status"]:
                return 200, self._status()
            case ["search"]:
                self.asked.append(body)
                return 200, self._search(body)
            case ["videos"]:
                offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
                shown = [file(n) for n in range(self.files) if query.get("q", "") in file(n)["name"]]
                return 200, {"total": len(shown), "items": shown[offset : offset + limit]}
            case ["videos", content, "match"]:
                heat = np.exp(-((np.arange(20) - 7) ** 2) / 8) + 0.15 * (int(content, 16) % 3)
                best = [{"start": 6.0, "end": 9.0, "score": 0.9}]
                if query["text"] == "cold":
                    heat, best = 0.01 * heat, [{"start": 6.0, "end": 9.0, "score": 0.01}]
                scores = np.clip(heat, 0, 1).round(3).tolist()
                return 200, {"step": 1.0, "scores": scores, "moments": best, "calibrated": True}
            case ["videos", content] if content == LOST:
                message = "there is no such file in the library (any more)"
                return 404, {"error": {"code": "not_found", "message": message, "field": None}}
            case ["videos", content]:
                return 200, details(int(content, 16))
            case ["jobs"] if method == "PUT":
                self.paused = body["paused"]
                return 200, {"jobs": [job()], "paused": self.paused}
            case ["jobs"]:
                return 200, {"jobs": [job()] if self.working else [], "paused": self.paused}
            case ["tags"]:
                return 200, {"tags": [{"tag": "sea", "moments": 2, "videos": 1}]}
            case ["videos", content, "annotations"] if method == "POST":
                made = {"id": len(self.annotations) + 1, "content": content, "made_at": 0.0, **body}
                self.annotations.append(made)
                return 201, made
            case ["videos", content, "annotations"]:
                found = [one for one in self.annotations if one["content"] == content]
                return 200, {"annotations": found}
            case ["annotations", number]:
                self.annotations = [one for one in self.annotations if one["id"] != int(number)]
                return 200, {"ok": True}
            case ["saved"]:
                saved = [{"name": name, "query": asked, "made_at": 0.0} for name, asked in self.saved.items()]
                return 200, {"saved": saved}
            case ["saved", name] if method == "PUT":
                self.saved[unquote(name)] = body
                return 200, {"name": unquote(name), "query": body, "made_at": 0.0}
            case ["saved", name]:
                del self.saved[unquote(name)]
                return 200, {"ok": True}
            case ["people"] if method == "DELETE":
                self.people = None
                return 200, {"ok": True}
            case ["people"] if method == "PUT":
                self.people = {1: "", 2: "Ada"} if body["on"] else None
                return 200, self._people()
            case ["people"]:
                return 200, self._people()
            case ["people", number, "faces"]:
                return 200, {"faces": [face(int(number), n) for n in range(3)]}
            case ["people", number, what]:
                self.asked.append({what: int(number), **body})
                return 200, {"ok": True, "id": 9}
            case ["people", number] if self.people and method == "PUT":
                self.people[int(number)] = body["name"]
                return 200, {"ok": True}
            case ["people", number] if self.people:
                del self.people[int(number)]
                return 200, {"ok": True}
            case ["examples"]:
                return 200, {
                    "examples": [] if not self.files else ["a boat leaves the harbour", "a birthday cake"]
                }
            case ["folders"] if method == "POST":
                self.asked.append(body)
                return 202, {"job": job()}
            case ["folders"]:
                return 200, folder(query.get("path"))
            case ["watched"]:
                if method == "PUT":
                    self.asked.append(body)
                    self.watched = [*self.watched, body["path"]] if body["on"] else []
                return 200, {"folders": self.watched}
            case ["failures", "retry"]:
                self.asked.append({"retry": True})
                return 202, {"job": job()}
            case ["failures"]:
                return 200, [{"path": "/home/me/Videos/torn.mp4", "reason": "no stream could be decoded"}]
            case ["banks"]:
                return 200, {"banks": self._status()["banks"]}
            case ["settings"]:
                return 200, {"log_queries": False, "log_bank": "log"}
            case ["models"] if method == "POST":
                self.asked.append(body)
                error = {"code": "too_many_jobs", "message": "100 jobs are waiting", "field": None}
                return 429, {"error": error}
            case ["models"]:
                return 200, {"models": models()}
            case ["hubness"]:
                return 200, hubness()
        return 404, {"error": {"code": "not_found", "message": f"there is no {path}", "field": None}}

    def _status(self) -> dict[str, Any]:
        return {
            "version": "0.1.0",
            "library": "/home/me/.local/share/wordreel",
            "read_only": self.mood in ("shown", "stale"),
            "model": {
                "name": "joint",
                "fingerprint": "f00d",
                "experts": ["clip", "speech", "ocr", "sound"],
            },
            "videos": self.files,
            "clips": 0 if self.mood == "stale" else 4 * self.files,
            "problem": STALE if self.mood == "stale" else None,
            "experts": ["clip", "speech", "ocr", "sound"],
            "folders": ["/home/me/Videos/2024", "/home/me/Videos"],
            "seconds": SECONDS * self.files,
            "banks": [{"name": "everyday", "size": 2000, "checked": None}],
            "jobs_running": 0,
            "login": "none",
            "roots": ["/home/me/Videos"],
            "norms": ["auto", "none", "is", "dis", "csls"],
            "max_upload": 1 << 30,
            "log_queries": False,
        }

    def _people(self) -> dict[str, Any]:
        known = self.people or {}
        facts = {"faces": 3, "videos": 2, "seconds": 9.0}
        people = [{"id": n, "name": name, "picture": f"/api/faces/{n}", **facts} for n, name in known.items()]
        return {"on": self.people is not None, "people": people}

    def _search(self, body: dict[str, Any]) -> dict[str, Any]:
        offset, limit = body.get("offset", 0), body.get("limit", 24)
        last = 0 if "nothing" in body.get("text", "") else self.files
        hits = [hit(n, n + 1, "then" in body) for n in range(offset, min(offset + limit, last))]
        for one in hits:
            if "sureshots" in body.get("text", ""):
                one["confidence"] = 1 - one["rank"] / 40 if one["rank"] < 40 else 0.0496
            if "blorp" in body.get("text", ""):
                one["confidence"] = 0.0
            if "like" in body:
                alike = {"start": 0.0, "end": 4.0}
                one.update(
                    confidence=None, like=alike, identical=one["rank"] == 1, score=1 - one["rank"] / 100
                )
        took = {"queue_ms": 1.0, "total_ms": 9.0}
        if body.get("compare"):
            order = (2, 0, 1, 3, 5, 4, 9, 6)
            hits = [hit(n, rank) for rank, n in enumerate(order, start=1)]
            plain = [hit(n, n + 1) for n in range(8)]
            return {
                "norm": "dis",
                "note": "",
                "notices": [],
                "took": took,
                "total_estimate": 10,
                "hits": hits,
                "plain": plain,
            }
        return {
            "query": body.get("text"),
            "norm": "none",
            "note": "",
            "notices": ["the search does not know “blorp”"] if "blorp" in body.get("text", "") else [],
            "took": took,
            "total_estimate": last,
            "hits": hits,
        }


class Handler(BaseHTTPRequestHandler):
    fake: Fake
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def do_DELETE(self) -> None:
        self._serve("DELETE")

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _serve(self, method: str) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if url.path.startswith(("/api/thumb/", "/api/preview/")):
            number = int(url.path.split("/")[3], 16)
            self._send(200, picture(number, float(query.get("t", 0))), "image/jpeg")
        elif url.path.startswith(("/api/uploads/", "/api/faces/")):
            self._send(200, picture(0, 0.0), "image/jpeg")
        elif url.path.startswith("/api/clip/"):
            name = {"Content-Disposition": "attachment; filename*=UTF-8''boat%200.02.mp4"}
            self._send(200, film(), "video/webm", {"X-Clip-Start": query["start"], **name})
        elif url.path == "/api/export":
            self._send(200, url.query.encode(), "text/csv")
        elif url.path.endswith("/events"):
            event = f"event: progress\ndata: {json.dumps(job())}\n\n"
            self._send(200, event.encode(), "text/event-stream")
        elif url.path.startswith("/media/"):
            self._send_media(int(url.path.split("/")[2], 16))
        elif url.path.startswith("/api/"):
            status, told = self.fake.answer(method, url.path, query, json.loads(sent or b"{}"))
            self._send(status, json.dumps(told).encode(), "application/json")
        else:
            wanted = PAGE / (url.path.lstrip("/") or "index.html")
            status = 200 if wanted.is_file() else 404
            found = wanted if wanted.is_file() else PAGE / "index.html"
            self._send(status, found.read_bytes(), TYPES[found.suffix])

    def _send_media(self, number: int) -> None:
        while self.path in self.fake.slow:
            time.sleep(0.02)
        if code := self.fake.lost.get(self.path):
            error = {"code": code, "message": "the file is not what it was", "field": None}
            self._send(410, json.dumps({"error": error}).encode(), "application/json")
            return
        if self.path in self.fake.unplayable:
            self._send(200, b"no film" * 99, "video/x-unknown")
            return
        if kind(number) == "image":
            self._send(200, picture(number, 0.0), "image/jpeg")
            return
        data = film()
        first, last = 0, len(data) - 1
        asked = self.headers.get("Range")
        if asked:
            begin, _, end = asked.removeprefix("bytes=").partition("-")
            first, last = int(begin), int(end) if end else last
        span = {"Content-Range": f"bytes {first}-{last}/{len(data)}", "Accept-Ranges": "bytes"}
        self._send(206 if asked else 200, data[first : last + 1], "video/webm", span)

    def _send(self, status: int, body: bytes, type_: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Type": type_, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY}
        for name, value in {**headers, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def start(mood: str = "full", port: int = 0) -> ThreadingHTTPServer:
    """A running server; its address is `server.server_address`, what it was asked is in `.fake.asked`."""
    film()
    fake = Fake(mood)
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Held", (Handler,), {"fake": fake}))
    server.daemon_threads = True
    server.fake = fake  # type: ignore[attr-defined]
    server.address = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    running = start(
        sys.argv[2] if len(sys.argv) > 2 else "full", int(sys.argv[1]) if len(sys.argv) > 1 else 8090
    )
    sys.stderr.write(f"http://127.0.0.1:{running.server_address[1]}\n")
    threading.Event().wait()
