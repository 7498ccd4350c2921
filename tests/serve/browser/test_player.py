"""The player: its place on the page, other results, links, files that are gone or cannot be played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve import fake_server
from tests.serve.browser.cdp import Page

FIRST = f"/?q=boat&video={0:064x}&t=2.0"
FRAME = "document.querySelector('.frame')"
VIDEO = "document.querySelector('dialog video')"


@pytest.fixture
def own() -> Iterator[Any]:
    """A server whose answers a test may change."""
    server = fake_server.start("full")
    yield server
    server.shutdown()


def test_the_place_of_the_picture_is_kept_free(page: Page, own: Any) -> None:
    own.fake.slow.add(f"/media/{0:064x}")
    page.open(own.address + FIRST)
    page.wait(FRAME)
    before = page.js(f"{FRAME}.getBoundingClientRect().height")
    assert page.js(f"{VIDEO}.readyState") == 0
    own.fake.slow.clear()
    page.wait(f"{VIDEO}.readyState > 1")
    after = page.js(f"{FRAME}.getBoundingClientRect().height")
    assert after == before
    shape = page.js(f"{FRAME}.clientWidth / {FRAME}.clientHeight")
    assert shape >= 160 / 90 - 0.01, "as wide as the picture, or wider where the window is low"


def test_previous_and_next_result(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.click(".results a.open")
    title = "document.querySelector('#player-title').textContent"
    page.wait(f"{title} === 'harbour at dawn.mp4'")
    assert page.js("document.querySelector('[aria-label=\"Previous result\"]').disabled")
    steps = page.js("history.length")
    page.click("[aria-label='Next result']")
    page.wait(f"{title} === 'birthday 2019.mov'")
    page.wait(VIDEO)
    page.key("n")
    page.wait(f"{title} === 'street.mp4'")
    page.wait(VIDEO)
    page.key("p")
    page.wait(f"{title} === 'birthday 2019.mov'")
    assert page.js("history.length") == steps
    page.key("Escape")
    page.wait("!document.querySelector('dialog') && location.search === '?q=boat'")


def test_a_link_to_this_second_is_copied(page: Page, full: Any) -> None:
    page.open(full.address + FIRST)
    page.wait(f"{VIDEO}?.readyState > 1")
    page.js(f"{VIDEO}.pause(), {VIDEO}.currentTime = 7.5")
    page.wait(f"!{VIDEO}.seeking")
    page.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.click(".copy")
    page.wait("document.querySelector('.copy').textContent === 'Link copied'")
    assert page.js("copied") == full.address + f"/?q=boat&video={0:064x}&t=7.5"
    page.open(page.js("copied"))
    page.wait(f"Math.abs({VIDEO}?.currentTime - 7.5) < 1")


@pytest.mark.parametrize(
    ("code", "words"), [("gone", "no longer there"), ("changed", "has changed since it was added")]
)
def test_a_file_that_is_gone_or_changed_says_so(page: Page, own: Any, code: str, words: str) -> None:
    own.fake.lost[f"/media/{0:064x}"] = code
    page.open(own.address + FIRST)
    page.wait(f"document.querySelector('.frame.gone')?.innerText.includes('{words}')")
    assert "Library" in page.js("document.querySelector('.frame.gone').innerText")


def test_a_file_the_browser_cannot_play_is_played_as_a_copy(page: Page, own: Any) -> None:
    own.fake.unplayable.add(f"/media/{0:064x}")
    page.open(own.address + FIRST)
    page.wait(f"{VIDEO}?.videoWidth > 0 && {VIDEO}.src.startsWith('blob:')")
    assert "so this is a copy" in page.js("document.querySelector('.seen').innerText")
    page.wait("document.querySelector('.strip')")
    page.wait("Number(document.querySelector('.strip').getAttribute('aria-valuenow')) >= 2")
    page.js(f"{VIDEO}.pause()")
    page.key("l")  # five seconds on, within the copy
    page.wait("Number(document.querySelector('.strip').getAttribute('aria-valuenow')) >= 6")
    assert [url.split("start=")[1][:4] for url in page.requests if "/api/clip/" in url] == ["2.00"]


def test_a_video_that_does_not_match_looks_cold(page: Page, full: Any) -> None:
    page.open(full.address + f"/?q=cold&video={0:064x}&t=2.0")
    page.wait("document.querySelector('.strip')")
    words = page.js("document.querySelector('.strips').innerText")
    assert "Nothing here clearly matches “cold”" in words
    tallest = page.js(
        "Math.max(...[...document.querySelectorAll('.heat-bar')].map(b => +b.getAttribute('height')))"
    )
    assert tallest <= 2


def test_no_moment_is_surer_than_its_hit(page: Page, full: Any) -> None:
    """The fifth hit is 43% sure, while the strip alone would say 90%."""
    page.open(full.address + "/?q=boat")
    page.click(".results .card:nth-child(4) a.open")
    sure = page.js("document.querySelector('.results .card:nth-child(4) .sure').textContent")
    page.wait("document.querySelector('.strips .chip')")
    assert sure.split(" ")[0] in page.js("document.querySelector('.strips .chip').textContent")


def test_why_and_what_was_recognised_say_how_they_differ(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.click(".results a.open")
    page.wait("document.querySelector('.because')")
    words = page.js("document.querySelector('.aside').textContent")
    assert "Closest to your words, at this moment" in words
    assert "The strongest over the whole video, whatever was asked" in words


def test_the_moment_of_a_result_is_saved_as_a_clip(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=boat")
    page.click(".results a.open")
    page.wait("document.querySelector('.save-clip')?.textContent === 'Save clip 0:02 – 0:06'")
    page.js("HTMLAnchorElement.prototype.click = function () { window.saved = this.download; }")
    page.click(".save-clip")
    page.wait("window.saved === 'boat 0.02.mp4' && !document.querySelector('.save-clip').disabled")
    (asked,) = [url for url in page.requests if "/api/clip/" in url]
    assert asked.endswith("?start=2.00&end=6.00")


def test_the_list_of_results_is_saved_for_other_programs(page: Page, full: Any) -> None:
    page.open(full.address + "/?q=red+boat&kind=video&moments=1")
    page.click(".summary .menu summary")
    page.wait("document.querySelector('.menu[open] a')?.checkVisibility()")
    links = page.js("[...document.querySelectorAll('.menu a')].map(a => a.getAttribute('href'))")
    assert [link.rsplit("format=")[1] for link in links] == ["csv", "edl", "otio", "m3u"]
    assert links[0] == "/api/export?kind=video&text=red+boat&moments=true&limit=200&format=csv"
