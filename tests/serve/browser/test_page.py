"""The page on the real server: `wordreel demo`'s library, a browser, and what people do.

WORDREEL_TEST_DEMO names the folder of an earlier `wordreel demo`, whose library is copied then.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import av
import cv2
import numpy as np
import pytest
from tests.serve.browser import axe
from tests.serve.browser.cdp import Browser, Page

pytestmark = pytest.mark.slow

pytest.importorskip("fastapi", reason="needs the serve extra: pip install 'wordreel[serve]'")

BOX = "document.querySelector('#query')"
VIDEO = "document.querySelector('dialog.player video')"
PHONE = (390, 844)
DESK = (1360, 900)


@dataclass(frozen=True)
class Running:
    address: str
    library: Path

    def get(self, path: str) -> dict[str, object]:
        with urlopen(f"{self.address}{path}", timeout=60) as answer:  # noqa: S310
            told: dict[str, object] = json.load(answer)
        return told


def wordreel(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from wordreel.cli import main; main()", *arguments]


def start(library: Path, *options: str, root: Path | None = None) -> tuple[subprocess.Popen[str], str]:
    """A server on a free port, and its address as it says it."""
    allowed = str(root or library.parent)
    command = wordreel("serve", "-L", str(library), "--port", "0", "--root", allowed, *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout
    line = process.stdout.readline()
    assert " at http://" in line, line + process.stdout.read()
    return process, line.split(" at ")[1].split("/ ")[0]


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's library, which tests may change."""
    folder = tmp_path_factory.mktemp("demo")
    made = os.environ.get("WORDREEL_TEST_DEMO")
    if made:
        shutil.copytree(Path(made) / "library", folder / "library")
    else:
        subprocess.run(
            wordreel("demo", "--folder", str(folder)), check=True, timeout=600, capture_output=True
        )
    build = wordreel("bank", "build", "everyday", "--builtin", "-L", str(folder / "library"))
    subprocess.run(build, timeout=300, capture_output=True)  # it may be there already
    return folder


@pytest.fixture(scope="module")
def server(demo: Path) -> Iterator[Running]:
    process, address = start(demo / "library")
    yield Running(address, demo / "library")
    stop(process)


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    opened = browser.page(*DESK)
    yield opened
    assert opened.quiet() == []
    here = (server.address, "data:", "blob:", "about:")
    assert [url for url in opened.requests if not url.startswith(here)] == [], "no other host is asked"
    opened.close()


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("WORDREEL_SHOTS"):
        page.shot(Path(folder) / f"real-{name}.png")


def found(name: str) -> str:
    """True once `name` is the best hit."""
    first = "document.querySelector('.results .card .title')"
    return f"document.querySelector('.results .badge') && {first}.textContent === '{name}'"


def card(name: str, part: str) -> str:
    return f".card:has([title$='{name}']) {part}"


def ask(page: Page, words: str) -> None:
    page.js(f"{BOX}.focus(), {BOX}.select()")
    page.type(words)


def title_film(to: Path, words: str, seconds: float = 4) -> Path:
    """A film that shows some words."""
    with av.open(str(to), "w") as out:
        stream = out.add_stream("libx264", rate=12)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        drawn = np.full((360, 640, 3), (70, 40, 20), np.uint8)
        cv2.putText(drawn, words, (40, 200), cv2.FONT_HERSHEY_DUPLEX, 1.5, (240, 240, 240), 3, cv2.LINE_AA)
        for _ in range(int(seconds * 12)):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(drawn, "bgr24")))
        out.mux(stream.encode())
    return to


def test_search_as_you_type_and_play_at_the_moment(page: Page, server: Running) -> None:
    page.open(server.address + "/")
    page.wait("document.querySelectorAll('.card').length >= 10")
    shot(page, "home")
    ask(page, "an old temple")
    page.wait(found("scrapbook.mp4"))
    assert page.js("location.search") == "?q=an+old+temple"
    assert "% sure" in page.js("document.querySelector('.card .sure').textContent")
    page.hover(card("scrapbook.mp4", "a.open"))
    page.wait("document.querySelector('.thumb.live video.moving')?.currentTime >= 10")
    page.click(card("scrapbook.mp4", "button[aria-expanded]"))
    page.wait("document.querySelectorAll('.why .weights li').length > 0")
    shot(page, "why")
    page.click(card("scrapbook.mp4", "a.open"))
    page.wait(f"{VIDEO}?.currentTime >= 10 && {VIDEO}.currentTime <= 15 && {VIDEO}.videoWidth > 0")
    page.wait("document.querySelectorAll('.strip .heat-bar').length >= 3")
    shot(page, "player")
    page.js(f"{VIDEO}.pause()")
    page.click(".strips .chip")
    page.wait(f"Math.abs({VIDEO}.currentTime - 10) < 1.5")
    page.key("Escape")
    page.wait(f"!document.querySelector('dialog') && {found('scrapbook.mp4')}")


def test_the_transcript_runs_with_the_video(page: Page, server: Running) -> None:
    page.open(server.address + "/?q=which+platform+does+the+train+leave+from")
    page.wait(found("announcement.mp4"))
    page.click(card("announcement.mp4", "a.open"))
    page.wait("document.querySelector('.lines li.said[aria-current]')")
    assert "platform" in page.js("document.querySelector('.lines').innerText").lower()
    assert page.js("document.querySelectorAll('.lines mark').length") >= 1


def test_filters_narrow_what_is_found(page: Page, server: Running) -> None:
    page.open(server.address + "/?q=a+man+talking")
    page.wait("document.querySelectorAll('.results .card').length === 14")
    page.click(".tool[aria-controls=filters]")
    page.wait("document.querySelector('#filter-min_duration')")
    page.click("#filter-min_duration")
    page.type("6")
    page.key("Enter")
    page.js("document.activeElement.blur()")
    page.wait("document.querySelectorAll('.results .card').length === 3")
    names = page.js("[...document.querySelectorAll('.results .title')].map(t => t.textContent).sort()")
    assert names == ["bikes.mp4", "scrapbook.mp4", "surf.wav"]
    shot(page, "filters")
    page.click(".chips .chip")
    page.wait("document.querySelectorAll('.results .card').length === 14")
    for kind, least in (("image", 4), ("video", 5)):
        choose = f"document.querySelector('#filter-kind').value = '{kind}'"
        page.js(f"{choose}, document.querySelector('#filter-kind').dispatchEvent(new Event('change')), true")
        page.wait(
            f"location.search.includes('kind={kind}') && !document.querySelector('.results[aria-busy]')"
        )
        badges = page.js("[...document.querySelectorAll('.results .badge')].map(b => b.textContent)")
        assert len(badges) >= least
        assert all((badge == "picture") == (kind == "image") for badge in badges)


def test_every_filter_on_real_files(server: Running) -> None:
    def names(query: str) -> set[str]:
        found = server.get(f"/api/search?text=something&limit=50&{query}")["hits"]
        return {hit["name"] for hit in found}  # type: ignore[attr-defined]

    everything = names("")
    assert len(everything) == 14
    assert names("kind=image") == {name for name in everything if name.endswith(("png", "jpg"))}
    assert names("kind=video") == {name for name in everything if name.endswith("mp4")}
    assert "announcement.mp4" in names("has_speech=true")
    assert "sign.mp4" in names("has_text=true")
    assert names("has_text=true").isdisjoint(names("has_text=false"))
    assert names("has_speech=true") | names("has_speech=false") == everything
    assert names("min_duration=6") == {"bikes.mp4", "scrapbook.mp4", "surf.wav"}
    assert names("kind=audio") == {"surf.wav"}
    assert names("max_duration=0") == names("kind=image")
    experts = server.get("/api/status")["experts"]
    assert {"appearance", "speech", "ocr"} <= set(experts)  # type: ignore[call-overload]
    assert all(names(f"expert={expert}") for expert in experts)  # type: ignore[attr-defined]
    assert names("expert=sound") < everything
    folders = server.get("/api/status")["folders"]
    assert names(f"folder={folders[0]}") == everything  # type: ignore[index]
    assert names("folder=/nowhere") == set()
    assert names("after=2001-01-01") == everything == names("before=2101-01-01")
    assert names("before=2001-01-01") == set()


def test_first_this_then_that(page: Page, server: Running) -> None:
    page.open(server.address + "/?q=a+cup+of+coffee")
    page.wait(found("scrapbook.mp4"))
    page.click(".tools button")
    page.wait("document.activeElement.id === 'then'")
    page.type("an old temple")
    page.wait("document.querySelector('.thumb.pair .badge')")
    page.wait(f"{found('scrapbook.mp4')} && location.search.includes('then=an+old+temple')")
    badge = page.js(f"document.querySelector({card('scrapbook.mp4', '.badge')!r}).textContent")
    assert badge == "0:00, then 0:10"
    shot(page, "then")
    page.click(card("scrapbook.mp4", "a.open"))
    page.wait("document.querySelectorAll('.strip').length === 2")


def test_more_like_this(page: Page, server: Running) -> None:
    page.open(server.address + "/?q=people+riding+bicycles")
    page.wait(found("bikes.mp4"))
    page.click(card("bikes.mp4", ".like"))
    page.wait("document.querySelector('.chip.strong')?.textContent.startsWith('Like bikes.mp4, 0:')")
    page.wait("document.querySelectorAll('.results .card').length > 3")


def test_side_by_side(page: Page, server: Running) -> None:
    page.open(server.address + "/?q=a+flower+in+bloom&norm=is")
    page.wait(found("flower.jpg"))
    page.click(".tool[aria-controls=filters]")
    page.click(".ranking-fields .tool")
    page.wait(
        "document.querySelectorAll('.ranks').length === 2 && document.querySelectorAll('.mark').length >= 20"
    )
    assert "inverted softmax, with the sample queries “everyday”" in page.js(
        "document.querySelector('.sides').innerText"
    )
    shot(page, "compare")


def test_a_picture_asks(page: Page, server: Running, tmp_path: Path) -> None:
    picture = tmp_path / "asked.png"
    cv2.imwrite(str(picture), np.full((200, 300, 3), (30, 120, 200), np.uint8))
    page.open(server.address + "/")
    page.wait("document.querySelector('.ask input[type=file]')")
    page.files(".ask input[type=file]", picture)
    page.wait("document.querySelector('.chip.strong')?.textContent === 'Like asked.png'", 60)
    page.wait("document.querySelectorAll('.results .card .badge').length > 3", 60)


def test_upload_find_and_delete(page: Page, server: Running, tmp_path: Path) -> None:
    film = title_film(tmp_path / "evening.mp4", "LIGHTHOUSE KEEPER")
    torn = tmp_path / "torn.mp4"
    torn.write_bytes(b"this is no film")
    page.open(server.address + "/?view=library")
    page.wait("document.querySelectorAll('.table li').length === 14")
    page.files(".drop input[type=file]", film)
    page.wait("document.querySelector('.jobs li')", 60)
    shot(page, "uploading")
    page.wait("document.querySelector('.jobs')?.innerText.includes('1 added')", 120)
    page.wait(
        "[...document.querySelectorAll('.table .title')].some(t => t.textContent === 'evening.mp4')", 60
    )
    page.open(server.address + "/?q=lighthouse+keeper")
    page.wait(found("evening.mp4"))
    page.open(server.address + "/?view=library&find=evening")
    page.wait("document.querySelectorAll('.table li').length === 1")
    page.click(".table .round")
    page.wait("document.querySelector('dialog.confirm')?.innerText.includes('file is deleted too')")
    shot(page, "delete")
    page.click(".confirm .danger")
    page.wait("document.querySelector('.files').innerText.includes('No file in the library has that')")
    page.open(server.address + "/?q=lighthouse+keeper")
    names = "[...document.querySelectorAll('.results .title')].map(t => t.textContent)"
    page.wait(f"document.querySelector('.results .badge') && !{names}.includes('evening.mp4')")
    page.open(server.address + "/?view=library")
    page.wait("document.querySelectorAll('.table li').length === 14")
    page.files(".drop input[type=file]", torn)
    page.wait("document.querySelector('[role=alert]')?.innerText.includes('torn.mp4')", 30)
    shot(page, "refused")
    page.errors.clear()  # the refusal is in the console too


def test_a_folder_is_added_with_reasons_for_what_failed(page: Page, server: Running) -> None:
    folder = server.library.parent / "more"
    folder.mkdir()
    title_film(folder / "pier.mp4", "FISH MARKET")
    (folder / "torn.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(200))
    page.open(server.address + "/?view=library")
    page.click("#folder")
    page.type("/etc")
    page.key("Enter")
    page.wait("document.querySelector('[role=alert]')?.innerText.includes('Only folders inside of these')")
    page.errors.clear()  # the refusal is in the console too
    page.js("document.querySelector('#folder').select()")
    page.type(str(folder))
    page.key("Enter")
    page.wait("document.querySelector('.jobs')?.innerText.includes('1 added, 1 failed')", 120)
    page.wait("document.querySelector('.jobs .failures').innerText.includes('torn.mp4')")
    page.wait("document.querySelector('.broken summary')?.textContent === '1 file could not be added'")
    shot(page, "added")
    page.open(server.address + "/?q=fish+market&moments=1")
    page.wait(found("pier.mp4"))


def test_hubs_and_banks(page: Page, server: Running) -> None:
    page.open(server.address + "/?view=ranking")
    page.wait("document.querySelectorAll('.plot polyline').length === 2", 30)
    page.wait("document.querySelectorAll('.small-cards .card').length > 3")
    assert "everyday" in page.js("document.querySelector('.banks').innerText")
    shot(page, "ranking")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desktop", "phone"])
def test_the_audit_finds_nothing_serious(
    browser: Browser, server: Running, size: tuple[int, int], dark: bool
) -> None:
    source = axe.script()
    opened = browser.page(*size, dark=dark, phone=size == PHONE)
    content = server.get("/api/search?text=a+cup+of+coffee&limit=1")["hits"][0]["content"]  # type: ignore[index]
    ready = {
        "/": "document.querySelector('.card')",
        "/?q=a+cup+of+coffee": "document.querySelector('.badge')",
        f"/?q=coffee&then=temple&video={content}": "document.querySelectorAll('.strip').length === 2",
        "/?q=coffee&compare=1&norm=is": "document.querySelector('.ranks li')",
        "/?view=library": "document.querySelector('.table li')",
        "/?view=ranking": "document.querySelector('.plot')",
        "/?view=settings": "document.querySelector('#log')",
    }
    for address, there in ready.items():
        opened.open(server.address + address)
        opened.wait(there, 30)
        found = [line for line in axe.findings(opened, source) if line.startswith(("serious", "critical"))]
        assert found == [], address
        assert opened.js("document.documentElement.scrollWidth <= innerWidth"), address
    opened.close()


def test_a_token_opens_the_page(browser: Browser, demo: Path, tmp_path: Path) -> None:
    library, kept = tmp_path / "library", tmp_path / "token"
    shutil.copytree(demo / "library", library)
    made = wordreel("serve", "-L", str(library), "--new-token", "--token-file", str(kept))
    token = subprocess.run(made, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    process, address = start(library, "--token-file", str(kept))
    try:
        opened = browser.page(*DESK)
        opened.open(address + "/?q=an+old+temple")
        opened.wait("document.querySelector('#token')")
        shot(opened, "login")
        opened.click("#token")
        opened.type("wrong")
        opened.key("Enter")
        opened.wait("document.querySelector('.wrong').textContent.includes('not the token')", 30)
        opened.js("document.querySelector('#token').select()")
        opened.type(token)
        opened.key("Enter")
        opened.wait(found("scrapbook.mp4"), 30)
        opened.wait("document.querySelector('.card img').naturalWidth > 0")
        assert opened.js("document.cookie") == "", "scripts cannot read the cookie"
        opened.open(address + "/?view=settings")
        opened.wait("[...document.querySelectorAll('main button')].some(b => b.textContent === 'Log out')")
        opened.js(
            "[...document.querySelectorAll('main button')].find(b => b.textContent === 'Log out').click()"
        )
        opened.wait("document.querySelector('#token')")
    finally:
        stop(process)
