"""Screenshots of every screen: desktop and phone, light and dark.

python -m tests.serve.browser.screens FOLDER [ADDRESS]

Without an address, the page is drawn with canned answers; with one, a running server's library is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.serve import fake_server
from tests.serve.browser.cdp import Browser

SIZES = {"desktop": (1360, 900), "phone": (390, 844)}
CARDS = "document.querySelectorAll('.results .card a.open').length > 0"
READY = {
    "player": "document.querySelector('.strip')",
    "compare": "document.querySelector('.ranks li')",
    "library": "document.querySelector('.table li')",
    "ranking": "document.querySelector('.plot')",
    "people": "document.querySelector('main .notice, .people .card')",
    "settings": "document.querySelector('#log')",
}


def views(content: str, words: str = "red boat", then: str = "a rope") -> dict[str, str]:
    """The address of every screen, with one video to play."""
    asked, later = words.replace(" ", "+"), then.replace(" ", "+")
    return {
        "home": "/",
        "search": f"/?q={asked}",
        "then": f"/?q={asked}&then={later}",
        "compare": f"/?q={asked}&norm=dis&compare=1",
        "player": f"/?q={asked}&video={content}&t=6",
        "library": "/?view=library",
        "ranking": "/?view=ranking",
        "people": "/?view=people",
        "settings": "/?view=settings",
    }


def ready(view: str) -> str:
    """What is true once a screen is drawn."""
    return READY.get(view, CARDS)


def draw(folder: Path, address: str, shown: dict[str, str]) -> None:
    """One file for each screen, size and scheme."""
    folder.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                page = browser.page(width, height, dark=scheme == "dark", phone=size == "phone")
                for view, path in shown.items():
                    page.open(address + path)
                    page.wait(ready(view))
                    page.shot(folder / f"{view}-{size}-{scheme}.png")
                page.close()
    finally:
        browser.close()


def main() -> None:
    folder = Path(sys.argv[1])
    if len(sys.argv) > 2:
        address = sys.argv[2].rstrip("/")
        words, then = "a cup of coffee", "an old temple"
        with urlopen(f"{address}/api/search?text=coffee&kind=video&limit=1", timeout=60) as answer:  # noqa: S310
            content = json.load(answer)["hits"][0]["content"]
        draw(folder, address, views(content, words, then))
        return
    server = fake_server.start("full")
    draw(folder, server.address, views(f"{0:064x}"))  # type: ignore[attr-defined]
    server.shutdown()


if __name__ == "__main__":
    main()
