"""A headless Chromium driven over the DevTools protocol: as much of it as the tests of the page need."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEYS = {
    "Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowDown": (40, ""), "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""), "ArrowUp": (38, ""), " ": (32, " "),
}  # fmt: skip


def chromium() -> str | None:
    """The browser's program, if there is one."""
    return next((found for name in CANDIDATES if (found := shutil.which(name))), None)


WAITED = "(() => { try { return (held => held instanceof Node || held)(%s); } catch { return null; } })()"


class Failed(AssertionError):
    """A script threw, or something did not come to be in time."""


class Browser:
    """One browser process with a profile of its own; `page()` opens a tab."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="wordreel-browser-")
        program = chromium()
        assert program, "install Chromium"
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--mute-audio", "--remote-debugging-port=0",
            "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required", f"--user-data-dir={self.home}",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            [program, *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.port = self._port()

    def _port(self) -> int:
        told = Path(self.home) / "DevToolsActivePort"
        for _ in range(1200):
            if told.exists() and (lines := told.read_text().splitlines()):
                return int(lines[0])
            time.sleep(0.1)
        raise Failed("Chromium did not start within 120 s")

    def page(self, width: int = 1360, height: int = 900, dark: bool = False, phone: bool = False) -> Page:
        asked = Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urlopen(asked, timeout=120) as answer:  # noqa: S310
            told = json.load(answer)
        made = Page(told["webSocketDebuggerUrl"])
        made.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        made.send("Emulation.setEmulatedMedia", features=[scheme])
        return made

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.home, ignore_errors=True)


class Page:
    """One tab. `errors` and `requests` hold what its console and its network told."""

    def __init__(self, address: str) -> None:
        from websockets.sync.client import connect

        self.held = ExitStack()
        self.socket = self.held.enter_context(
            connect(address, max_size=None, ping_interval=None, close_timeout=1)
        )
        self.number = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self.send("Page.close")
        self.held.close()

    def send(self, method: str, **params: Any) -> Any:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            told = json.loads(self.socket.recv(timeout=120))
            if told.get("id") == self.number:
                if "error" in told:
                    raise Failed(f"{method}: {told['error']['message']}")
                return told["result"]
            self._note(told)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}".strip())
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def js(self, script: str) -> Any:
        """The value of an expression; promises are awaited."""
        told = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise Failed(told["exceptionDetails"].get("exception", {}).get("description", script))
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := self.js(WAITED % script):
                return found
            time.sleep(0.05)
        raise Failed(f"not within {seconds:g} s: {script}\n{self.js('document.body.innerText')[:800]}")

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def click(self, selector: str) -> None:
        """A real press of the mouse in the middle of the first element of `selector`."""
        x, y = self.middle(selector)
        for type_ in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=type_, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        x, y = self.middle(selector)
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def middle(self, selector: str) -> tuple[float, float]:
        at = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{at} && ({at}.scrollIntoView({{block: 'nearest'}}), true)")
        box = self.js(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({at}.getBoundingClientRect())"
        )
        return box[0], box[1]

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def key(self, key: str) -> None:
        code, text = KEYS.get(key) or (ord(key.upper()), key)
        at = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **at)
        self.send("Input.dispatchKeyEvent", type="keyUp", **at)

    def files(self, selector: str, *paths: Path) -> None:
        """Chooses files in a file field."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in paths])

    def shot(self, to: Path, settle: float = 0.6) -> None:
        time.sleep(settle)
        data = self.send("Page.captureScreenshot", format="png")["data"]
        to.write_bytes(base64.b64decode(data))

    def quiet(self, allowed: Callable[[str], bool] = lambda _: False) -> list[str]:
        """What the console complained about, but for what is `allowed`."""
        self.js("0")  # takes in what has arrived
        return [error for error in self.errors if not allowed(error)]
