"""A real `wordreel serve` for the soak, and clips for its library."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

WORDREEL = [sys.executable, "-c", "from wordreel.cli import main; main()"]
VIDEOS = "/api/videos?limit=100"
PROMPT = 120.0  # seconds that a request may take
JOB = 3600.0  # seconds that an add may take on a busy machine


def clip(path: Path, seed: int, seconds: float = 4.0) -> Path:
    """A film of coloured noise with a tone; each seed has its own."""
    rng = np.random.default_rng(seed)
    with av.open(str(path), "w") as out:
        picture, tone = out.add_stream("libx264", rate=8), out.add_stream("aac", rate=16000)
        picture.width, picture.height, picture.pix_fmt = 160, 120, "yuv420p"
        base = rng.integers(0, 200, (15, 20, 3))
        for number in range(round(seconds * 8)):
            image = (base + rng.integers(0, 56, base.shape)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 8)
            out.mux(picture.encode(frame))
        out.mux(picture.encode())
        wave = np.sin(np.arange(round(seconds * 16000)) * rng.uniform(0.02, 0.2)).astype(np.float32)[None]
        for at in range(0, wave.shape[1], 1024):
            sound = av.AudioFrame.from_ndarray(wave[:, at : at + 1024], format="fltp", layout="mono")
            sound.sample_rate, sound.pts, sound.time_base = 16000, at, Fraction(1, 16000)
            out.mux(tone.encode(sound))
        out.mux(tone.encode())
    return path


@dataclass
class Server:
    """A running `wordreel serve`, and how to ask it."""

    process: subprocess.Popen[str]
    port: int

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PROMPT)
        given = {"X-Wordreel": "1", "Content-Type": "application/json", **headers}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), given)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise AssertionError(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer)

    def usage(self) -> dict[str, int]:
        """Memory and open files of the server itself."""
        folder = Path(f"/proc/{self.process.pid}")
        lines = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        return {
            "rss_mib": int(lines["VmRSS"].split()[0]) // 1024,
            "threads": int(lines["Threads"]),
            "open_files": len(list((folder / "fd").iterdir())),
        }


@contextmanager
def served(library: Path, media: Path, *options: str) -> Iterator[Server]:
    command = [*WORDREEL, "serve", "-L", str(library), "--port", "0", "--root", str(media), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        port = int(line.partition("://127.0.0.1:")[2].partition("/")[0])
        server = Server(process, port)
        until = time.monotonic() + PROMPT
        while not _answers(server):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError("the server did not start")
            time.sleep(0.1)
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def _answers(server: Server) -> bool:
    try:
        return server.ask("GET", "/healthz")[0] == 200
    except OSError:
        return False
