"""People, tags and saved searches on the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.serve import fake_server
from tests.serve.browser.cdp import Page

MAIN = "document.querySelector('main')"


@pytest.fixture
def own() -> Iterator[Any]:
    """A server whose answers a test changes."""
    server = fake_server.start("full")
    yield server
    server.shutdown()


def test_people_are_off_until_they_are_turned_on_and_can_be_forgotten(page: Page, own: Any) -> None:
    page.open(own.address + "/?view=people")
    page.wait(f"{MAIN}.innerText.includes('Nothing leaves this computer')")
    page.click("main .primary")
    page.wait("document.querySelectorAll('.people .card').length === 2")
    page.click(".people .card input[type=text]")
    page.type("Grace")
    page.key("Enter")
    page.js("document.activeElement.blur()")
    page.wait("document.querySelector('.people .open')?.ariaLabel.startsWith('Grace')")
    assert own.fake.people[1] == "Grace"
    page.click(".people .card:nth-child(1) input[type=checkbox]")
    page.click(".people .card:nth-child(2) input[type=checkbox]")
    page.click(".tools .tool:not(:disabled)")
    page.wait("document.querySelector('.tools .tool:disabled')")
    assert own.fake.asked[-1] == {"merge": 1, "others": [2]}
    page.click(".tools .tool:last-child")
    page.click("dialog .danger")
    page.wait(f"{MAIN}.innerText.includes('People are not looked for')")
    assert own.fake.people is None


def test_a_person_is_searched_for_with_words(page: Page, own: Any) -> None:
    own.fake.people = {2: "Ada"}
    page.open(own.address + "/")
    page.click("[data-place=people]")
    page.click(".people a.open")
    page.wait("document.querySelectorAll('.grid .card').length === 3")
    page.click(".person a.primary")
    page.wait("location.search === '?people=Ada' && document.activeElement.id === 'query'")
    page.type("on a boat")
    page.wait("document.querySelector('.results .badge') && !document.querySelector('.results[aria-busy]')")
    assert (own.fake.asked[-1]["people"], own.fake.asked[-1]["text"]) == (["Ada"], "on a boat")
    assert page.js("document.querySelector('.chosen').innerText") == "with Ada"


def test_a_moment_is_tagged_and_noted(page: Page, own: Any) -> None:
    page.open(own.address + "/?q=boat")
    page.click(".results a.open")
    page.wait("document.querySelector('#tag') && document.querySelector('dialog video').currentTime >= 2")
    page.js("document.querySelector('dialog video').pause()")
    page.click("#tag")
    page.type("sea")
    page.key("Enter")
    page.wait("document.querySelector('.tags .tag')?.textContent.startsWith('#sea · 0:02')")
    (made,) = own.fake.annotations
    assert (made["kind"], made["start"], made["end"]) == ("tag", 2, 6)
    page.click("#tag")
    page.type("the rope breaks")
    page.click(".tagging .tool:last-child")
    page.wait("document.querySelector('.tags .note')?.textContent.includes('the rope breaks')")
    page.click(".tags .tag .round")
    page.wait("!document.querySelector('.tags .tag')")
    assert [one["kind"] for one in own.fake.annotations] == ["note"]


def test_a_search_is_saved_and_found_on_the_start_page(page: Page, own: Any) -> None:
    page.open(own.address + "/?q=red+boat&kind=video&tags=sea")
    page.click(".saving button")
    page.wait("document.activeElement.closest('.saving')")
    page.type("Boats at sea")
    page.key("Enter")
    page.wait("document.querySelector('.saving').innerText.includes('Saved')")
    assert own.fake.saved == {"Boats at sea": {"text": "red boat", "kind": "video", "tags": ["sea"]}}
    page.open(own.address + "/")
    page.click("[aria-label=Saved] a")
    page.wait("location.search === '?q=red+boat&kind=video&tags=sea'")
    page.open(own.address + "/")
    page.click("[aria-label=Saved] .round")
    page.wait("!document.querySelector('[aria-label=Saved]')")
    assert own.fake.saved == {}
