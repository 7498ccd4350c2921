"""Five tasks of a new user, done in a real browser on a real library: clicks, keys and seconds each.

python -m tests.serve.browser.tasks DEMO [--out results/page] [--label after]

DEMO is the folder of an earlier `wordreel demo`; its library is copied. Seconds are those of a script that
neither reads nor thinks, so they are the part of the page and the server. `--label` names the column of the
table; the others stay as they were measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.serve.browser.cdp import Browser, Failed, Page
from tests.serve.browser.test_page import start, stop, title_film

PLAYS = "(v => v && v.currentTime >= 10 && v.videoWidth > 0)(document.querySelector('dialog.player video'))"


HEAD = """# The page: five tasks of a new user

By `python -m tests.serve.browser.tasks DEMO`, on the library of `wordreel demo`, in Chromium. The column "before" was
taken by the same steps on the page as it was then. Seconds are those of a script that neither reads nor thinks, on a
machine of two cores that did other work (its load is in the head): read them as orders of magnitude. The first search of
a server that has just started loads the model. The task about a person was done on a library of 38 videos that show people
(`--people ADDRESS`).

"""  # noqa: E501 - Markdown


class User:
    """Somebody who clicks and types, and counts it."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.keys = page, 0, 0

    def click(self, selector: str) -> None:
        self.page.click(selector)
        self.clicks += 1

    def type(self, text: str) -> None:
        self.page.type(text)
        self.keys += len(text)


def find_a_moment(user: User) -> None:
    user.type("an old temple")
    title = "document.querySelector('.results .card .title')?.textContent"
    user.page.wait(f"document.querySelector('.results .badge') && {title} === 'scrapbook.mp4'")
    user.click(".results .card a.open")
    user.page.wait(PLAYS)


def save_it_as_a_clip(user: User) -> None:
    find_a_moment(user)
    user.page.js("HTMLAnchorElement.prototype.click = function () { window.saved = this.download; }")
    user.click(".save-clip")
    user.page.wait("window.saved")


def find_a_person(user: User) -> None:
    user.click("[data-place=people]")
    user.page.wait("document.querySelector('main .notice, .people .card')")
    if user.page.js("Boolean(document.querySelector('main .notice .primary'))"):
        user.click("main .notice .primary")
    user.click(".people .card input[type=text]")
    user.type("Ada")
    user.page.js("document.activeElement.blur()")
    user.page.wait("document.querySelector('.people .open')?.ariaLabel.startsWith('Ada')")
    user.click(".people a.open")
    user.click(".person a.primary")
    user.page.wait("document.activeElement.id === 'query'")
    user.type("talking")
    user.page.wait("document.querySelector('.results .badge') && !document.querySelector('[aria-busy]')")


def add_a_folder(user: User) -> None:
    user.click("[data-place=library]")
    user.click("[aria-controls=folder-browser]")
    user.page.wait("document.querySelector('.folder')")
    user.click(".browser li:has(bdi) .folder")
    user.page.wait("document.querySelector('#folder').value.endsWith('/holiday')")
    user.click(".browser .primary")
    user.page.wait("document.querySelector('.jobs li')")


def find_out_why_a_file_is_missing(user: User) -> None:
    user.click("[data-place=library]")
    user.click(".broken summary")
    words = "document.querySelector('.broken .failures')"
    user.page.wait(f"{words}?.checkVisibility() && {words}.innerText.includes('torn.mp4')")


TASKS: dict[str, Callable[[User], None]] = {
    "find a moment": find_a_moment,
    "save it as a clip": save_it_as_a_clip,
    "find a person": find_a_person,
    "add a folder": add_a_folder,
    "find out why a file is missing": find_out_why_a_file_is_missing,
}


def measure(demo: Path, people: str | None = None) -> dict[str, Any]:
    """What each task takes; `people` is the address of a server for the task about a person."""
    with tempfile.TemporaryDirectory(prefix="wordreel-tasks-") as name:
        folder = Path(name)
        shutil.copytree(demo / "library", folder / "library.lib")
        (folder / "Videos" / "holiday").mkdir(parents=True)
        title_film(folder / "Videos" / "holiday" / "pier.mp4", "FISH MARKET")
        (folder / "Videos" / "holiday" / "torn.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
        process, address = start(folder / "library.lib", root=folder / "Videos")
        browser, found = Browser(), {}
        try:
            for task, work in TASKS.items():
                there = people if work is find_a_person and people else address
                found[task] = _measured(browser, there, work)
                if task == "add a folder":  # the next task asks about one of its files
                    page = browser.page()
                    page.open(address + "/?view=library")
                    page.wait("document.querySelector('.broken summary')", 300)
        finally:
            browser.close()
            stop(process)
    return found


def _measured(browser: Browser, address: str, work: Callable[[User], None]) -> dict[str, Any]:
    page = browser.page()
    page.open(address + "/")
    page.wait("document.querySelector('.results .card')")
    user, began = User(page), time.monotonic()
    try:
        work(user)
    except Failed as error:
        return {"not possible": str(error).splitlines()[0]}
    finally:
        seconds = time.monotonic() - began
        page.close()
    return {"clicks": user.clicks, "keys": user.keys, "seconds": round(seconds, 1)}


def table(measured: dict[str, Any]) -> str:
    labels = list(measured)
    heads = [f"{label}, at load {measured[label]['load']}" for label in labels]
    lines = ["| task | " + " | ".join(heads) + " |", "|---" * (len(labels) + 1) + "|"]
    for task in TASKS:
        cells = [_cell(measured[label].get(task, {})) for label in labels]
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(taken: dict[str, Any]) -> str:
    if "clicks" not in taken:
        return "not possible"
    return f"{taken['clicks']} clicks, {taken['keys']} keys, {taken['seconds']} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demo", type=Path)
    parser.add_argument(
        "--people", metavar="ADDRESS", help="a server whose library shows people, for that task"
    )
    parser.add_argument("--out", type=Path, default=Path("results/page"))
    parser.add_argument("--label", default="after")
    given = parser.parse_args()
    kept = given.out / "tasks.json"
    measured = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    measured[given.label] = {"load": round(os.getloadavg()[0]), **measure(given.demo, given.people)}
    given.out.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    (given.out / "README.md").write_text(HEAD + table(measured) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
