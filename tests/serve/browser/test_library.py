"""The library view: choosing folders, work that runs, states of files, what failed, names that deceive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve import fake_server
from tests.serve.browser.cdp import Browser, Page

LIBRARY = "/?view=library"
MAIN = "document.querySelector('main')"


@pytest.fixture
def working() -> Iterator[Any]:
    server = fake_server.start("working")
    yield server
    server.shutdown()


def test_a_folder_is_chosen_by_clicking(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.click("[aria-controls=folder-browser]")
    page.wait("document.querySelectorAll('.folder').length === 2")
    page.click(".browser li:nth-child(2) .folder")
    page.wait("document.querySelector('#folder').value === '/home/me/Videos/2024'")
    assert "12 videos, sounds and pictures" in page.js("document.querySelector('.browser').innerText")
    page.click(".browser .folder")
    page.wait("document.querySelector('#folder').value === '/home/me/Videos'")
    page.click(".browser .primary")
    page.wait("document.querySelector('.jobs li')")
    assert full.fake.asked[-1] == {"path": "/home/me/Videos"}


def test_a_home_folder_may_be_typed(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.click("#folder")
    page.type("~/Videos")
    page.key("Enter")
    page.wait("document.querySelector('.jobs li')")
    assert full.fake.asked[-1] == {"path": "~/Videos"}


def test_a_folder_is_watched_and_no_longer(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.click("#watch")
    page.click("#folder")
    page.type("~/Videos")
    page.key("Enter")
    page.wait("document.querySelector('.watched:not([hidden]) input:checked')")
    assert full.fake.asked[-2:] == [{"path": "~/Videos"}, {"path": "~/Videos", "on": True}]
    page.click(".watched input")
    page.wait("!document.querySelector('.watched input').checked")
    page.open(full.address + LIBRARY)
    page.wait("document.querySelector('.watched[hidden]')")
    assert full.fake.asked[-1] == {"path": "~/Videos", "on": False}


def test_files_in_work_are_shown_and_work_can_pause(page: Page, working: Any) -> None:
    page.open(working.address + LIBRARY)
    page.wait("document.querySelectorAll('.in-work li').length === 2")
    words = page.js("document.querySelector('.work').innerText")
    assert "0 of 38 files done" in words
    assert "street.mp4 · quick look" in words
    assert page.js("document.querySelector('.work progress').value") == 0.02
    page.click(".work .tool")
    page.wait("document.querySelector('.work').innerText.includes('Paused')")
    assert working.fake.paused
    page.click(".work .tool")
    page.wait("!document.querySelector('.work').innerText.includes('Paused')")


def test_every_file_says_how_it_is(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.wait("document.querySelectorAll('.table li').length === 50")
    states = page.js("[...document.querySelectorAll('.files .state')].slice(0, 5).map(s => s.textContent)")
    assert states == ["", "quick look", "being prepared", "file not found", ""]


def test_a_file_that_failed_is_found_by_its_name_with_the_reason(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.wait("document.querySelector('.broken:not([open]) summary')")
    page.click("#find")
    page.type("torn")
    page.wait("document.querySelector('.broken[open]')?.innerText.includes('no stream could be decoded')")
    page.click(".broken .tool")
    page.wait("document.querySelector('.jobs li')")
    assert full.fake.asked[-1] == {"retry": True}


def test_an_open_list_of_failures_stays_open(page: Page, full: Any) -> None:
    page.open(full.address + LIBRARY)
    page.wait("document.querySelector('.broken:not([open]) summary')")
    page.click(".broken summary")
    page.js("window.first = document.querySelector('.broken')")
    page.js("document.querySelector('#find').value = 'o'")
    page.js("document.querySelector('#find').dispatchEvent(new Event('input', {bubbles: true}))")
    page.wait("document.querySelector('.broken') && document.querySelector('.broken') !== window.first")
    page.js("window.first = document.querySelector('.broken')")
    page.js("document.querySelector('#find').value = ''")
    page.js("document.querySelector('#find').dispatchEvent(new Event('input', {bubbles: true}))")
    page.wait("document.querySelector('.broken') && document.querySelector('.broken') !== window.first")
    assert page.js("document.querySelector('.broken').open")


def test_names_that_turn_the_direction_are_shown_safely(
    page: Page, full: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_server, "NAMES", ("holiday\u202e4pm.exe",))
    for address in (LIBRARY, "/?q=boat"):
        page.open(full.address + address)
        page.wait("document.querySelector('.title')")
        assert page.js("document.querySelector('.title').textContent") == "holiday\ufffd4pm.exe"
        assert page.js("Boolean(document.querySelector('.title bdi'))")


def test_pictures_are_as_sharp_as_the_screen(browser: Browser, full: Any) -> None:
    page = browser.page(390, 844, phone=True)
    page.open(full.address + "/")
    page.wait("document.querySelector('.card img')?.naturalWidth > 0")
    assert "size=360" in page.js("document.querySelector('.card img').currentSrc")
    page.close()
